//! `deerflow users` and `deerflow audit`: manages the accounts of an installation, whether or not
//! its server is running.

mod audit;
mod credentials;
mod import;
mod usage;

use std::io::{BufRead, Write};
use std::path::Path;

use anyhow::{Context as _, bail};
use chrono::{DateTime, Utc};
use deerflow_accounts::{
    AccountDeletion, CreatedUser, NewUser, Operator, SignIn, SignInError, UserChange,
};
use deerflow_domain::accounts::{
    Account, AccountQuery, AccountStore, AccountStores, DeletedData, Email, Role,
};
use deerflow_domain::quota_usage::QuotaUsageStore;
use harness::clock::iso;
use harness::quota::UserQuotas;
use secrecy::SecretString;
use serde_json::{Map, Value, json};

use self::credentials::write_credentials;
use super::table::{Table, write_json};
use crate::cli::{UserArgs, UsersCommand};

/// Number of accounts that are read at a time.
const PAGE: u64 = 1_000;

/// Accounts of an installation.
#[derive(Debug)]
pub struct Users<'a> {
    /// Operations on accounts.
    pub service: &'a SignIn,
    /// Stores.
    pub stores: &'a AccountStores,
    /// Deletion of accounts; `None` for commands that delete none.
    pub deletion: Option<&'a AccountDeletion>,
    /// Amounts that count towards quotas.
    pub usage: &'a dyn QuotaUsageStore,
    /// Quotas of each user.
    pub quotas: UserQuotas,
    /// Data folder, to which generated passwords are written.
    pub home: &'a Path,
    /// Current time by the clock of the stores.
    pub now: DateTime<Utc>,
}

impl Users<'_> {
    /// Runs `deerflow users`. `input` is read for passwords and confirmations.
    pub async fn run(
        &self,
        command: &UsersCommand,
        input: &mut dyn BufRead,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let role = |role| UserChange {
            role: Some(role),
            ..UserChange::default()
        };
        let disabled = |disabled| UserChange {
            disabled: Some(disabled),
            ..UserChange::default()
        };
        match command {
            UsersCommand::List { q, limit, json, .. } => {
                self.list(q.as_deref(), *limit, *json, out).await
            }
            UsersCommand::Create {
                email,
                admin,
                password_stdin,
                json,
                ..
            } => {
                let password = password_stdin.then(|| read_line(input)).transpose()?;
                let role = if *admin { Role::Admin } else { Role::User };
                self.create(email, role, password, *json, out).await
            }
            UsersCommand::ResetPassword { user, json, .. } => {
                self.reset_password(user.as_deref(), *json, out).await
            }
            UsersCommand::Promote(args) => self.change(args, role(Role::Admin), out).await,
            UsersCommand::Demote(args) => self.change(args, role(Role::User), out).await,
            UsersCommand::Disable(args) => self.change(args, disabled(true), out).await,
            UsersCommand::Enable(args) => self.change(args, disabled(false), out).await,
            UsersCommand::Delete {
                user, yes, json, ..
            } => self.delete(user, *yes, *json, input, out).await,
            UsersCommand::Usage {
                user, limit, json, ..
            } => self.usage(user.as_deref(), *limit, *json, out).await,
            UsersCommand::Import { source, json, .. } => self.import(source, *json, out).await,
        }
    }

    async fn list(
        &self,
        q: Option<&str>,
        limit: u64,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let query = AccountQuery {
            q: q.map(str::to_owned),
            limit,
            ..AccountQuery::default()
        };
        let page = self.stores.accounts.list(&query).await?;
        if as_json {
            let users = page.accounts.iter().map(Account::to_json).collect();
            return Ok(write_json(&users, out)?);
        }
        let mut table = Table::new(&["E-MAIL", "ROLE", "STATE", "CREATED", "LAST SIGN-IN", "ID"]);
        for account in &page.accounts {
            table.row([
                account.email.to_string(),
                account.role.as_str().to_owned(),
                state(account).to_owned(),
                iso(account.created_at),
                account.last_login_at.map_or_else(|| "-".to_owned(), iso),
                account.id.clone(),
            ]);
        }
        Ok(table.write(out)?)
    }

    async fn create(
        &self,
        email: &str,
        role: Role,
        password: Option<SecretString>,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let new = NewUser {
            email: email.to_owned(),
            role,
            password,
        };
        let created = self.service.create_user(&new, &Operator::default()).await;
        let CreatedUser { account, generated } = created?;
        let file = match &generated {
            Some(password) => Some(write_credentials(self.home, &account, password)?),
            None => None,
        };
        if as_json {
            let mut shown = account.to_json();
            shown["credentials_file"] = file.into();
            return Ok(write_json(&shown, out)?);
        }
        writeln!(out, "created {}", described(&account))?;
        if let Some(file) = file {
            writeln!(out, "the password is in {file}")?;
        }
        Ok(())
    }

    async fn reset_password(
        &self,
        user: Option<&str>,
        as_json: bool,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let account = match user {
            Some(user) => find_account(&*self.stores.accounts, user).await?,
            None => self.first_administrator().await?,
        };
        let operator = Operator::default();
        let reset = self.service.reset_password(&account.id, &operator);
        let (account, password) = reset.await?;
        let file = write_credentials(self.home, &account, &password)?;
        if as_json {
            let mut shown = account.to_json();
            shown["credentials_file"] = file.into();
            return Ok(write_json(&shown, out)?);
        }
        writeln!(out, "reset the password of {}", described(&account))?;
        Ok(writeln!(out, "the password is in {file}")?)
    }

    /// Returns the oldest enabled administrator, else the oldest one.
    async fn first_administrator(&self) -> anyhow::Result<Account> {
        let mut disabled = None;
        let mut query = AccountQuery {
            limit: PAGE,
            ..AccountQuery::default()
        };
        loop {
            let page = self.stores.accounts.list(&query).await?.accounts;
            let is_last = page.is_empty();
            query.offset += PAGE;
            for account in page {
                if account.is_enabled_admin() {
                    return Ok(account);
                }
                if account.role == Role::Admin && disabled.is_none() {
                    disabled = Some(account);
                }
            }
            if is_last {
                return disabled.context(
                    "there is no administrator; create one with `deerflow users create EMAIL --admin`",
                );
            }
        }
    }

    async fn change(
        &self,
        args: &UserArgs,
        change: UserChange,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let account = find_account(&*self.stores.accounts, &args.user).await?;
        let operator = Operator::default();
        let changed = self.service.change_user(&account.id, change, &operator);
        let changed = match changed.await {
            Err(SignInError::NoAdministrator) => bail!(
                "{}; `deerflow users create EMAIL --admin` does that",
                SignInError::NoAdministrator
            ),
            changed => changed?,
        };
        if args.json {
            return Ok(write_json(&changed.to_json(), out)?);
        }
        Ok(writeln!(
            out,
            "{} is {}",
            described(&changed),
            state(&changed)
        )?)
    }

    async fn delete(
        &self,
        user: &str,
        is_confirmed: bool,
        as_json: bool,
        input: &mut dyn BufRead,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let deletion = self
            .deletion
            .context("the command was started without a deletion")?;
        let account = find_account(&*self.stores.accounts, user).await?;
        if !is_confirmed {
            write!(
                out,
                "delete {} with all threads, files and settings? [y/N] ",
                described(&account)
            )?;
            out.flush()?;
            let mut line = String::new();
            input.read_line(&mut line)?;
            if !matches!(line.trim(), "y" | "Y" | "yes") {
                bail!("nothing was deleted; use --yes to delete without a question");
            }
        }
        let deleted = deletion.delete(&account.id, &Operator::default()).await?;
        if as_json {
            let shown = json!({ "id": account.id, "deleted": counts(&deleted) });
            return Ok(write_json(&shown, out)?);
        }
        writeln!(out, "deleted {}", described(&account))?;
        for data in deleted.iter().filter(|data| data.count > 0) {
            writeln!(out, "  {} {}", data.count, data.kind.replace('_', " "))?;
        }
        Ok(())
    }
}

/// Returns the account with this e-mail or id.
pub(super) async fn find_account(
    accounts: &dyn AccountStore,
    user: &str,
) -> anyhow::Result<Account> {
    let by_email = match Email::parse(user.trim()) {
        Ok(email) => accounts.find_by_email(&email).await?,
        Err(_) => None,
    };
    let found = match by_email {
        Some(account) => Some(account),
        None => accounts.find(user).await?,
    };
    found.with_context(|| {
        format!("there is no account {user:?}; `deerflow users list` shows all accounts")
    })
}

fn counts(deleted: &[DeletedData]) -> Map<String, Value> {
    let counts = deleted.iter();
    counts
        .map(|data| (data.kind.clone(), data.count.into()))
        .collect()
}

fn described(account: &Account) -> String {
    format!(
        "{} {} (id {})",
        account.role.as_str(),
        account.email,
        account.id
    )
}

fn state(account: &Account) -> &'static str {
    match (account.is_enabled(), account.needs_setup) {
        (false, _) => "disabled",
        (true, true) => "enabled, must choose a password",
        (true, false) => "enabled",
    }
}

/// Reads a password, which is one line.
fn read_line(input: &mut dyn BufRead) -> anyhow::Result<SecretString> {
    let mut line = String::new();
    let read = input
        .read_line(&mut line)
        .context("cannot read the password")?;
    anyhow::ensure!(read > 0, "there is no password on standard input");
    Ok(line.trim_end_matches(['\r', '\n']).to_owned().into())
}

#[cfg(test)]
#[path = "users_tests.rs"]
mod tests;
