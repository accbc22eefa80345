//! Selects what is deleted with an account.

use std::sync::Arc;

use deerflow_accounts::UserRuns;
use deerflow_domain::accounts::UserData;
use deerflow_domain::threads::ThreadStore;
use deerflow_gateway::ports::ThreadFilesPort;
use deerflow_stores::Database;
use harness::runtime::runs::{DeletedThreads, RunsFacade};
use harness::sandbox::FileHome;

use super::stores::Stores;
use super::user_rows::UserRows;
use crate::user_data::{UserFolder, UserThreads};

/// Returns the data that a server deletes, in order.
pub(super) fn of_server(
    stores: &Stores,
    runs: &Arc<RunsFacade>,
    thread_files: Arc<dyn ThreadFilesPort>,
    files: &FileHome,
) -> Vec<Arc<dyn UserData>> {
    let threads = UserThreads {
        threads: stores.of_events.threads.clone(),
        files: thread_files,
        in_memory: Some(DeletedThreads::new(runs.runtime())),
    };
    let runs = Arc::new(UserRuns(runs.clone()));
    ordered(&stores.user_rows, runs, threads, files)
}

/// Returns the data that a command deletes, in order. `runs` ends the unfinished runs.
pub(super) fn of_command(
    db: &Database,
    runs: Arc<dyn UserData>,
    threads: Arc<dyn ThreadStore>,
    files: &FileHome,
) -> Vec<Arc<dyn UserData>> {
    let threads = UserThreads {
        threads,
        files: Arc::new(files.clone()),
        in_memory: None,
    };
    ordered(&UserRows::of(db), runs, threads, files)
}

fn ordered(
    rows: &UserRows,
    runs: Arc<dyn UserData>,
    threads: UserThreads,
    files: &FileHome,
) -> Vec<Arc<dyn UserData>> {
    let mut data = rows.sources.clone();
    data.push(runs);
    data.push(Arc::new(threads));
    data.extend(rows.rest.iter().cloned());
    data.push(Arc::new(UserFolder(files.clone())));
    data
}
