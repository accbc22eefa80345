//! Lanes that a rate limit closes, over SQL.

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{Account, AccountClaim, ChannelStoreError, ClosedLane};
use sea_orm::{ConnectionTrait, DbErr, QueryResult, Statement};

use super::SqlChannelStore;
use super::fence::{FencedWrite, account_values};
use crate::db::entity::{micros, moment, plain};
use crate::db::error::read;
use crate::db::space::WriteClass;

/// Stored chat of a lane of the whole account.
const ACCOUNT: &str = "";

const CLOSE: &str = "\
    INSERT INTO channel_lanes (provider, account, chat, closed_until) VALUES (?, ?, ?, ?) \
    ON CONFLICT (provider, account, chat) DO UPDATE SET closed_until = excluded.closed_until \
    WHERE channel_lanes.closed_until < excluded.closed_until";

const CLOSED: &str = "\
    SELECT chat, closed_until FROM channel_lanes WHERE provider = $1 AND account = $2 AND closed_until > $3 ORDER BY chat";

impl SqlChannelStore {
    pub(super) async fn store_lane(
        &self,
        claim: &AccountClaim,
        lane: &ClosedLane,
    ) -> Result<(), ChannelStoreError> {
        let [provider, account] = account_values(&claim.account);
        let chat = plain(lane.chat.as_deref().unwrap_or(ACCOUNT)).into();
        let values = vec![provider, account, chat, micros(lane.until).into()];
        FencedWrite::new(claim)
            .text(CLOSE, values)
            .run(self.db.writes(), WriteClass::Release)
            .await
    }

    pub(super) async fn read_lanes(
        &self,
        account: &Account,
        at: DateTime<Utc>,
    ) -> Result<Vec<ClosedLane>, ChannelStoreError> {
        let connection = self.db.reads();
        let [provider, account] = account_values(account);
        let statement = Statement::from_sql_and_values(
            connection.get_database_backend(),
            CLOSED,
            [provider, account, micros(at).into()],
        );
        let rows = read(connection.query_all_raw(statement).await)?;
        Ok(read(rows.iter().map(lane).collect())?)
    }
}

fn lane(row: &QueryResult) -> Result<ClosedLane, DbErr> {
    let chat: String = row.try_get_by_index(0)?;
    Ok(ClosedLane {
        chat: (chat != ACCOUNT).then_some(chat),
        until: moment(row.try_get_by_index(1)?),
    })
}
