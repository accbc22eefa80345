//! Bodies of sign-in.

use deerflow_domain::accounts::Role;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::extract::request_body;
use crate::schema::words;

/// A new account.
#[derive(Default, Deserialize, ToSchema)]
pub struct NewAccountBody {
    /// E-mail address of at most 254 characters.
    #[serde(default)]
    #[schema(required = true)]
    pub email: String,
    /// Password of 8 to 256 characters.
    #[serde(default)]
    #[schema(required = true)]
    pub password: String,
    /// `false` if the session ends when the browser closes.
    #[serde(default = "yes")]
    pub remember_me: bool,
}

request_body!(NewAccountBody, is_secret: true);

/// A change of the password.
#[derive(Default, Deserialize, ToSchema)]
pub struct PasswordChangeBody {
    /// Current password.
    #[serde(default)]
    #[schema(required = true)]
    pub current_password: String,
    /// New password of 8 to 256 characters.
    #[serde(default)]
    #[schema(required = true)]
    pub new_password: String,
    /// New e-mail address.
    #[serde(default)]
    pub new_email: Option<String>,
    /// `false` if the session ends when the browser closes; by default as before.
    #[serde(default)]
    pub remember_me: Option<bool>,
}

request_body!(PasswordChangeBody, is_secret: true);

/// Sign-in with e-mail and password.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "describes a form, which is read without serde")]
pub struct SignInForm {
    /// E-mail address.
    username: String,
    /// Password.
    password: String,
    /// `false` if the session ends when the browser closes.
    #[serde(default = "yes")]
    remember_me: bool,
}

/// A new API key.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct NewKeyBody {
    /// Name of at most 100 characters.
    #[serde(default)]
    #[schema(required = true)]
    pub name: String,
    /// Lifetime in days, by default 365.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 365)]
    pub expires_in_days: Option<u64>,
}

request_body!(NewKeyBody);

words! {
    /// Role of an account.
    RoleName(Role) {
        "user" => Role::User,
        "admin" => Role::Admin,
    }
}

impl Default for RoleName {
    fn default() -> Self {
        Self(Role::User)
    }
}

/// An account that an administrator creates.
#[derive(Default, Deserialize, ToSchema)]
pub struct NewUserBody {
    /// E-mail address of at most 254 characters.
    #[serde(default)]
    #[schema(required = true)]
    pub email: String,
    /// Role.
    #[serde(default)]
    #[schema(inline)]
    pub role: RoleName,
    /// Password of 8 to 256 characters. Without one it is generated, and the person has to choose
    /// another one.
    #[serde(default)]
    pub password: Option<String>,
}

request_body!(NewUserBody);

/// Change of an account by an administrator.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub struct UserPatchBody {
    /// New role.
    #[serde(default)]
    #[schema(inline)]
    pub role: Option<RoleName>,
    /// `true` disables the account and ends its sessions, `false` enables it.
    #[serde(default)]
    pub disabled: Option<bool>,
}

request_body!(UserPatchBody);

fn yes() -> bool {
    true
}
