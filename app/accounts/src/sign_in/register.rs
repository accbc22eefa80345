//! Registration of users, and setup of the first administrator.

use deerflow_domain::accounts::{
    Account, Admission, AuditAction, Email, NewAccount, NewAuditEntry, Role, check_password,
};

use super::{Credentials, SignIn, SignInError, SignedIn};
use crate::client::Client;

impl SignIn {
    /// Creates an account of a user and signs in. `per_hour` limits the registrations of an address;
    /// 0 means no limit.
    pub async fn register(
        &self,
        entered: &Credentials,
        per_hour: u32,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let email = checked(entered)?;
        let stores = &self.parts.stores;
        let now = self.parts.clock.now();
        let wait = stores.limits.register(&client.key(), per_hour, now).await?;
        if let Some(retry_after) = wait {
            return Err(SignInError::Limited { retry_after });
        }
        if stores.accounts.find_by_email(&email).await?.is_some() {
            return Err(SignInError::EmailTaken);
        }
        let (role, admission) = (Role::User, Admission::Always);
        let account = self.create(entered, email, role, admission, client).await?;
        self.enter(&account, entered, client).await
    }

    /// Creates the first administrator and signs in. Of concurrent calls one succeeds, and the
    /// others are refused with [`SignInError::AdministratorExists`].
    pub async fn initialize(
        &self,
        entered: &Credentials,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let email = checked(entered)?;
        let account = {
            let _first = self.initializing.lock().await;
            let accounts = &self.parts.stores.accounts;
            if accounts.census().await?.administrators > 0 {
                return Err(SignInError::AdministratorExists);
            }
            if accounts.find_by_email(&email).await?.is_some() {
                return Err(SignInError::EmailTaken);
            }
            let (role, admission) = (Role::Admin, Admission::NoAdministrator);
            self.create(entered, email, role, admission, client).await?
        };
        self.enter(&account, entered, client).await
    }

    async fn create(
        &self,
        entered: &Credentials,
        email: Email,
        role: Role,
        admission: Admission,
        client: &Client,
    ) -> Result<Account, SignInError> {
        let hash = self.parts.passwords.hash(&entered.password).await?;
        let at = self.parts.clock.now();
        let new = NewAccount {
            id: self.parts.ids.random().to_string(),
            email,
            role,
            password_hash: Some(hash),
            identity: None,
            needs_setup: false,
            admission,
            at,
        };
        let entry = client.sign(NewAuditEntry::new(AuditAction::AccountCreated, at));
        Ok(self.parts.stores.accounts.create(new, entry).await?)
    }

    async fn enter(
        &self,
        account: &Account,
        entered: &Credentials,
        client: &Client,
    ) -> Result<SignedIn, SignInError> {
        let verified = account.password_hash.clone();
        let signed_in = self
            .start(account, verified, entered.persistent, client)
            .await?;
        self.remember(account, client).await?;
        Ok(signed_in)
    }
}

/// Checks e-mail and password of a new account.
fn checked(entered: &Credentials) -> Result<Email, SignInError> {
    use secrecy::ExposeSecret as _;

    let email = Email::parse(entered.email.trim())?;
    check_password(entered.password.expose_secret(), &email)?;
    Ok(email)
}
