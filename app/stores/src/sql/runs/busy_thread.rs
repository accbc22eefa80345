//! Admission of a run that does not start at once on a free thread.

use deerflow_runtime::runs::store::{AdmitError, Admitted, NewRun};
use deerflow_runtime::runs::{AdmissionDecision, RunRecord, RunStatus, decide_admission};
use sea_orm::sea_query::{Expr, OnConflict};
use sea_orm::{
    ColumnTrait, DatabaseTransaction, DbErr, EntityTrait, IntoActiveModel, QueryFilter, QueryOrder,
};

use super::row::{admitted, cancel_word, readable, record};
use super::serialized_run::SerializedRun;
use super::unreadable::{end_unreadable_row, sanitised};
use super::{large_texts, user_runs};
use crate::db::entity::{micros, moment, run};
use crate::db::tx::TxError;

/// Admits a run to a thread with unfinished runs, a run with a delay, or one of a user near the
/// limits.
pub(super) async fn admit_to_busy_thread(
    tx: &DatabaseTransaction,
    run: &SerializedRun,
) -> Result<Admitted, TxError<AdmitError>> {
    let new = &run.new;
    let active = run::Entity::find()
        .filter(run::Column::ThreadId.eq(new.thread_id.as_str()))
        .filter(run::is_active())
        .order_by_asc(run::Column::CreatedAt)
        .order_by_asc(run::Column::RunId)
        .all(tx)
        .await?;
    let mut others = Vec::with_capacity(active.len());
    for row in active {
        match readable(&row) {
            Err(reason) if !has_owner(&row) => {
                drop(end_unreadable_row(tx, row, &reason, micros(new.at)).await?)
            }
            _ => others.push(sanitised(row)),
        }
    }
    // The thread's lock makes this position unique.
    let position = others
        .iter()
        .map(|row| row.place)
        .max()
        .map_or(0, |last| last + 1);
    // A clock that is ahead must not make a run later than one that was admitted after it.
    let begins: Vec<_> = others
        .iter()
        .map(|row| {
            row.due_at
                .unwrap_or_else(|| Ord::min(row.created_at, micros(new.created_at)))
        })
        .collect();
    let mut others = others
        .into_iter()
        .map(record)
        .collect::<Result<Vec<RunRecord>, DbErr>>()?;
    let seen = others.iter().zip(begins).map(|(run, begins)| RunRecord {
        created_at: moment(begins),
        ..run.clone()
    });
    let seen = seen.collect::<Vec<_>>();
    let of_user = user_runs::locked_count(tx, new).await?;
    let (status, stop) = match decide_admission(new, &seen, of_user) {
        AdmissionDecision::Take(stop) => (RunStatus::Starting, stop),
        AdmissionDecision::Wait(stop) => (RunStatus::Pending, stop),
        refused => return Err(TxError::Refused(refusal_reason(tx, new, refused).await?)),
    };
    let row = run::Model {
        place: position,
        ..run.row(status)
    };
    let insert = run::Entity::insert(row.into_active_model())
        .on_conflict(OnConflict::new().do_nothing().to_owned());
    if insert.exec_without_returning(tx).await? == 0 {
        return Err(TxError::Refused(AdmitError::RunExists(new.run_id.clone())));
    }
    large_texts::insert(tx, &new.run_id, run.texts_apart()).await?;
    others.retain(|run| run.cancel.is_none());
    let Some(action) = stop else {
        return Ok(Admitted {
            run: admitted(new, status),
            displaced: Vec::new(),
            head: None,
        });
    };
    run::Entity::update_many()
        .col_expr(run::Column::CancelAction, Expr::value(cancel_word(action)))
        .col_expr(run::Column::UpdatedAt, Expr::value(micros(new.at)))
        .filter(run::Column::RunId.is_in(others.iter().map(|run| run.run_id.as_str())))
        .exec(tx)
        .await?;
    for other in &mut others {
        other.cancel = Some(action);
    }
    Ok(Admitted {
        run: admitted(new, status),
        displaced: others,
        head: None,
    })
}

async fn refusal_reason(
    tx: &DatabaseTransaction,
    new: &NewRun,
    refused: AdmissionDecision,
) -> Result<AdmitError, DbErr> {
    if run::Entity::find_by_id(new.run_id.as_str())
        .one(tx)
        .await?
        .is_some()
    {
        return Ok(AdmitError::RunExists(new.run_id.clone()));
    }
    Ok(match refused {
        AdmissionDecision::Refuse(active) => AdmitError::ThreadBusy {
            thread_id: new.thread_id.clone(),
            active,
        },
        AdmissionDecision::QuotaExceeded(exceeded) => exceeded.into(),
        _ => AdmitError::QueueFull(new.thread_id.clone()),
    })
}

/// Returns `true` if a node owns the run. A newer version may be able to read it.
fn has_owner(row: &run::Model) -> bool {
    RunStatus::parse(&row.status).is_some_and(RunStatus::is_owned)
}
