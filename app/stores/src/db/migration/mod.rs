//! Migrations of the schema. To change the schema: add a file `mNNNN_what` with a struct, and
//! append it to the list; never edit an old one.

mod m0001_baseline;
mod m0002_feedback;
mod m0003_run_batches;
mod m0004_run_queue;
mod m0005_assistants;
mod m0006_thread_search;
mod m0007_store_items;
mod m0008_crons;
mod m0009_api_keys;
mod m0010_thread_expiry;
mod m0011_run_error;
mod m0012_nodes;
mod m0013_tool_ledger;
mod m0014_thread_counts;
mod m0015_run_order;
mod m0016_request_keys;
mod m0017_upkeep;
mod m0018_memories;
mod m0019_fact_counts;
mod m0020_stream_log;
mod m0021_admin_keys;
mod m0022_model_usage;
mod m0023_kept_states;
mod m0024_flows;
mod m0025_channels;
mod m0026_channel_lanes;
mod m0027_accounts;
mod m0028_scheduled_tasks;
mod m0030_used_states;
mod m0036_thread_log;
mod m0037_user_runs;
mod m0038_run_functions;
mod m0039_run_indexes;
mod m0040_run_texts;
mod m0041_run_text_parts;
mod m0042_long_events;
mod m0043_run_index_order;
mod m0044_active_run_index_order;

pub(crate) mod progress;

use deerflow_core::fail_points;
use sea_orm::{ConnectionTrait, DatabaseConnection, DbBackend, DbErr, TransactionTrait};
use sea_orm_migration::{MigrationTrait, MigratorTrait};

use self::progress::{MigrationProgress, OnProgress};

struct Migrator;

impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_baseline::Baseline),
            Box::new(m0002_feedback::Feedback),
            Box::new(m0003_run_batches::RunBatches),
            Box::new(m0004_run_queue::RunQueue),
            Box::new(m0005_assistants::Assistants),
            Box::new(m0006_thread_search::ThreadSearch),
            Box::new(m0007_store_items::StoreItems),
            Box::new(m0008_crons::Crons),
            Box::new(m0009_api_keys::ApiKeys),
            Box::new(m0010_thread_expiry::ThreadExpiry),
            Box::new(m0011_run_error::RunErrorName),
            Box::new(m0012_nodes::Nodes),
            Box::new(m0013_tool_ledger::ToolLedger),
            Box::new(m0014_thread_counts::ThreadCounts),
            Box::new(m0015_run_order::RunOrder),
            Box::new(m0016_request_keys::RequestKeys),
            Box::new(m0017_upkeep::Upkeep),
            Box::new(m0018_memories::Memories),
            Box::new(m0019_fact_counts::FactCounts),
            Box::new(m0020_stream_log::StreamLog),
            Box::new(m0021_admin_keys::AdminKeys),
            Box::new(m0022_model_usage::ModelUsage),
            Box::new(m0023_kept_states::KeptStates),
            Box::new(m0024_flows::Flows),
            Box::new(m0025_channels::Channels),
            Box::new(m0026_channel_lanes::ChannelLanes),
            Box::new(m0027_accounts::Accounts),
            Box::new(m0028_scheduled_tasks::ScheduledTasks),
            Box::new(m0030_used_states::UsedStates),
            Box::new(m0036_thread_log::ThreadLog),
            Box::new(m0037_user_runs::UserRuns),
            Box::new(m0038_run_functions::RunFunctions),
            Box::new(m0039_run_indexes::RunIndexes),
            Box::new(m0040_run_texts::RunTexts),
            Box::new(m0041_run_text_parts::RunTextParts),
            Box::new(m0042_long_events::LongEvents),
            Box::new(m0043_run_index_order::RunIndexOrder),
            Box::new(m0044_active_run_index_order::ActiveRunIndexOrder),
        ]
    }
}

/// Migrates the schema in one transaction, and reports each step for a database that has a schema.
/// Several processes may call it at once: on Postgres an advisory lock serialises them, and SQLite
/// is protected by the data directory's lock.
pub(crate) async fn migrate(
    db: &DatabaseConnection,
    on_progress: OnProgress<'_>,
) -> Result<(), DbErr> {
    let tx = db.begin().await?;
    if tx.get_database_backend() == DbBackend::Postgres {
        tx.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({ADVISORY_LOCK})"))
            .await?;
    }
    let steps = Migrator::get_pending_migrations(&tx).await?;
    if steps.len() == Migrator::migrations().len() {
        // A new database needs no report, and all at once is faster.
        Migrator::up(&tx, None).await?;
    } else {
        for (done, step) in steps.iter().enumerate() {
            on_progress(&MigrationProgress {
                done,
                total: steps.len(),
                step: step.name().to_owned(),
            });
            Migrator::up(&tx, Some(1)).await?;
        }
    }
    fail_points::pass("migration.written");
    tx.commit().await?;
    fail_points::pass("migration.committed");
    Ok(())
}

/// Table with the names of the applied migrations.
pub(crate) const APPLIED: &str = "seaql_migrations";

/// Returns the names of all migrations, in order.
pub(crate) fn names() -> Vec<String> {
    Migrator::migrations()
        .iter()
        .map(|migration| migration.name().to_owned())
        .collect()
}

/// Lock number that no other program uses: the first eight bytes of `deerflow` as text.
const ADVISORY_LOCK: i64 = i64::from_be_bytes(*b"deerflow");
