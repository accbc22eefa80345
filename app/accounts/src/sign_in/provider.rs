//! Sign-in of a person whom an identity provider has named.

use deerflow_domain::accounts::{
    Account, AccountChange, AccountError, Admission, AttemptKey, AuditAction, AuditOutcome, Email,
    NewAccount, NewAuditEntry, ProviderIdentity, Role, SessionsAfter, TokenHash,
};
use harness::config::OidcProviderConfig;

use super::{SignIn, SignInError, SignedIn};
use crate::client::Client;
use crate::oidc::{PendingSignIn, ProviderPerson, STATE_AGE};

/// Reason why a person at a provider does not come in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProviderRefusal {
    /// The id of the person is empty or too long.
    #[error("the id of the person is not valid")]
    Identity,
    /// The rules of the provider exclude the person.
    #[error("the person may not sign in: {0}")]
    NotAllowed(&'static str),
    /// An account of another kind has the e-mail.
    #[error("an account with this e-mail exists")]
    AccountExists,
    /// Another failure.
    #[error(transparent)]
    SignIn(#[from] SignInError),
}

/// Callback whose result counts against the client's address; `None` if the address is that of a
/// proxy, behind which all clients are one.
#[derive(Debug)]
pub struct ProviderAttempt(Option<AttemptKey>);

/// Checked e-mail of a person.
struct PersonEmail {
    email: Email,
    verified: bool,
}

impl SignIn {
    /// Begins a sign-in that came back from a provider. Failures count per address, as wrong
    /// passwords do, so that no client can make the server call a provider without limit.
    pub async fn begin_attempt(&self, client: &Client) -> Result<ProviderAttempt, SignInError> {
        if client.address.to_canonical().is_loopback() {
            return Ok(ProviderAttempt(None));
        }
        let id = self.parts.ids.random();
        let key = AttemptKey::new(id, &format!("callback {id}"), client.key());
        self.admit(&key).await?;
        Ok(ProviderAttempt(Some(key)))
    }

    /// Records that the attempt at the provider `name` failed, or was refused by a rule.
    pub async fn fail_attempt(
        &self,
        attempt: &ProviderAttempt,
        name: &str,
        outcome: AuditOutcome,
        client: &Client,
    ) -> Result<(), SignInError> {
        let entry = NewAuditEntry::new(AuditAction::SignIn, self.parts.clock.now())
            .on(format!("provider {name}"))
            .with_outcome(outcome);
        let (stores, entry) = (&self.parts.stores, client.sign(entry));
        match &attempt.0 {
            Some(key) => stores.limits.fail(key, entry).await.map(drop)?,
            None => stores.audit.append(entry).await?,
        }
        Ok(())
    }

    /// Ends an attempt that did not fail.
    pub async fn end_attempt(&self, attempt: &ProviderAttempt) -> Result<(), SignInError> {
        if let Some(key) = &attempt.0 {
            self.parts.stores.limits.withdraw(key).await?;
        }
        Ok(())
    }

    /// Records the use of a state; `false` if it completed a sign-in before, on any node.
    pub async fn use_state(&self, pending: &PendingSignIn) -> Result<bool, SignInError> {
        let now = self.parts.clock.now();
        let state = TokenHash::of(pending.state());
        // A signature has the resolution of a second.
        let until = now + STATE_AGE + chrono::TimeDelta::seconds(1);
        let states = &self.parts.stores.used_states;
        Ok(states.use_state(&state, now, until).await?)
    }

    /// Signs in a person at the provider `name`, by its rules. The first sign-in creates an account
    /// or joins one.
    pub async fn enter_from_provider(
        &self,
        name: &str,
        rules: &OidcProviderConfig,
        person: &ProviderPerson,
        persistent: bool,
        client: &Client,
    ) -> Result<SignedIn, ProviderRefusal> {
        let identity = ProviderIdentity::new(name, &*person.subject);
        let identity = identity.ok_or(ProviderRefusal::Identity)?;
        let email = permitted(rules, person)?;
        let accounts = &self.parts.stores.accounts;
        let known = accounts.find_by_identity(&identity).await;
        let account = match known.map_err(SignInError::from)? {
            Some(account) => account,
            None => self.admit_person(&identity, rules, email, client).await?,
        };
        match self.start_session(&account, persistent, client).await {
            Err(SignInError::Disabled) => {
                Err(ProviderRefusal::NotAllowed("the account is disabled"))
            }
            started => Ok(started?),
        }
    }

    /// Returns the account of a person who signs in for the first time.
    async fn admit_person(
        &self,
        identity: &ProviderIdentity,
        rules: &OidcProviderConfig,
        person: PersonEmail,
        client: &Client,
    ) -> Result<Account, ProviderRefusal> {
        let accounts = &self.parts.stores.accounts;
        let holder = accounts.find_by_email(&person.email).await;
        let holder = holder.map_err(SignInError::from)?;
        let admitted = if let Some(holder) = holder {
            if rules.link_by_verified_email && person.verified {
                self.link(&holder, identity, client).await
            } else {
                Err(AccountError::EmailTaken)
            }
        } else if rules.auto_create_users {
            self.create_person(identity, rules, person, client).await
        } else {
            return Err(ProviderRefusal::NotAllowed("there is no account"));
        };
        match admitted {
            Ok(account) => Ok(account),
            Err(AccountError::EmailTaken | AccountError::IdentityTaken) => {
                // A concurrent callback of the same person may have created the account.
                let found = accounts.find_by_identity(identity).await;
                let found = found.map_err(SignInError::from)?;
                found.ok_or(ProviderRefusal::AccountExists)
            }
            Err(other) => Err(SignInError::from(other).into()),
        }
    }

    async fn create_person(
        &self,
        identity: &ProviderIdentity,
        rules: &OidcProviderConfig,
        person: PersonEmail,
        client: &Client,
    ) -> Result<Account, AccountError> {
        let at = self.parts.clock.now();
        let is_admin = person.verified
            && rules
                .admin_emails
                .iter()
                .any(|admin| admin.trim().eq_ignore_ascii_case(person.email.as_str()));
        let new = NewAccount {
            id: self.parts.ids.random().to_string(),
            email: person.email,
            role: if is_admin { Role::Admin } else { Role::User },
            password_hash: None,
            identity: Some(identity.clone()),
            needs_setup: false,
            admission: Admission::Always,
            at,
        };
        let entry = client.sign(NewAuditEntry::new(AuditAction::AccountCreated, at));
        self.parts.stores.accounts.create(new, entry).await
    }

    /// Links an identity to an account. Registration does not verify the e-mail, so the account
    /// may be another person's: its password, sessions and keys are removed (decision 0051).
    async fn link(
        &self,
        holder: &Account,
        identity: &ProviderIdentity,
        client: &Client,
    ) -> Result<Account, AccountError> {
        let at = self.parts.clock.now();
        let entry = NewAuditEntry::new(AuditAction::AccountLinked, at)
            .by(&holder.id)
            .on(&*holder.id);
        let change = AccountChange {
            identity: Some(identity.clone()),
            drops_credentials: true,
            ..AccountChange::default()
        };
        let entries = vec![client.sign(entry)];
        let accounts = &self.parts.stores.accounts;
        let linked = accounts
            .change(&holder.id, change, SessionsAfter::EndAll, entries, at)
            .await?;
        self.parts.cache.forget_user(&holder.id);
        Ok(linked)
    }
}

/// Applies the rules of a provider that need no account.
fn permitted(
    rules: &OidcProviderConfig,
    person: &ProviderPerson,
) -> Result<PersonEmail, ProviderRefusal> {
    let refused = ProviderRefusal::NotAllowed;
    let email = person
        .email
        .as_deref()
        .ok_or(refused("there is no e-mail"))?;
    let email = Email::parse(email.trim()).map_err(|_| refused("the e-mail is not valid"))?;
    let verified = person.email_verified;
    if rules.require_verified_email && !verified {
        return Err(refused("the e-mail is not verified"));
    }
    let domain = email.domain();
    let domains = &rules.allowed_email_domains;
    if !domains.is_empty()
        && !domains
            .iter()
            .any(|allowed| allowed.trim().eq_ignore_ascii_case(domain))
    {
        return Err(refused("the domain of the e-mail is not allowed"));
    }
    Ok(PersonEmail { email, verified })
}

#[cfg(test)]
#[path = "provider_tests.rs"]
mod tests;
