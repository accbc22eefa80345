//! Opens the accounts of an installation for a command, whether or not its server is running.

use std::sync::Arc;

use deerflow_accounts::password::PasswordPool;
use deerflow_accounts::{AccountDeletion, SessionCache, SignIn, SignInParts, StoredRuns, UserRuns};
use deerflow_domain::accounts::{AccountStores, UserData};
use deerflow_stores::{Database, SqlAccountStore, SqlQuotaUsage, SqlRunStore, SqlUserRows};
use harness::clock::Clock;
use harness::config::AppConfig;
use harness::ids::SystemIds;
use harness::runtime::tasks::Tasks;
use harness::sandbox::{FileHome, FileLimits};

use super::database::database_of;
use super::journal::{self, EventStores};
use super::user_data;
use crate::config::Settings;
use crate::user_data::with_request;

/// Accounts of an installation.
#[derive(Debug)]
pub struct OpenedAccounts {
    /// Operations on accounts.
    pub service: SignIn,
    /// Stores.
    pub stores: AccountStores,
    /// Clock of the stores.
    pub clock: Arc<dyn Clock>,
    /// Amounts that count towards quotas.
    pub usage: SqlQuotaUsage,
    db: Database,
    cache: Arc<SessionCache>,
    /// `true` if a process is using the database.
    in_use: bool,
}

/// Opens the accounts for one command. The caller must shut `tasks` down afterwards.
pub async fn open(
    config: &AppConfig,
    settings: &Settings,
    tasks: &Tasks,
) -> anyhow::Result<OpenedAccounts> {
    let address = database_of(config, settings)?;
    let in_use = Database::probe(&address).await?.in_use;
    let db = if in_use {
        Database::open_shared(&address).await?
    } else {
        Database::open(&address, tasks).await?
    };
    let clock = db.clock(tasks).await?;
    let stores = SqlAccountStore::new(db.clone()).stores();
    let cache = Arc::new(SessionCache::new(stores.sessions.clone(), clock.clone()));
    let service = SignIn::new(SignInParts {
        stores: stores.clone(),
        passwords: PasswordPool::default(),
        cache: cache.clone(),
        clock: clock.clone(),
        ids: Arc::new(SystemIds::default()),
    });
    Ok(OpenedAccounts {
        service,
        stores,
        clock,
        usage: SqlQuotaUsage::new(db.clone()),
        db,
        cache,
        in_use,
    })
}

impl OpenedAccounts {
    /// Prepares the deletion of accounts. Fails if a running server has locked the journal.
    pub fn deletion(
        &self,
        config: &AppConfig,
        settings: &Settings,
    ) -> anyhow::Result<AccountDeletion> {
        let runs = Arc::new(SqlRunStore::new(self.db.clone()));
        let journal = journal::open(config, settings, &mut Vec::new());
        let journal = with_request(journal, self.in_use, settings.port)?;
        let threads = EventStores::new(&self.db, &runs, journal).threads;
        let ending: Arc<dyn UserData> = if self.in_use {
            let (query, cancels, clock) = (runs.clone(), runs, self.clock.clone());
            Arc::new(UserRuns(Arc::new(StoredRuns {
                query,
                cancels,
                clock,
            })))
        } else {
            SqlUserRows::abandoned_runs(&self.db)
        };
        let files = FileHome::new(settings.home.as_path(), FileLimits::default());
        let data = user_data::of_command(&self.db, ending, threads, &files);
        let (stores, cache) = (self.stores.clone(), self.cache.clone());
        let clock = self.clock.clone();
        Ok(AccountDeletion::new(stores, cache, data, clock))
    }
}
