//! `authorization`: what the roles of users may use.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::check::Checker;
use super::open_keys::OpenKeys;

/// Name of the built-in provider, as DeerFlow calls it.
pub const RBAC_PROVIDER: &str = "deerflow.authz.rbac:RbacAuthorizationProvider";
/// Name that stands for commands in the section `sandbox`.
pub const COMMANDS: &str = "bash";

/// Authorization of users by their roles.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthorizationConfig {
    /// Enables the rules; without them, every role may use everything.
    pub enabled: bool,
    /// `true` if an unknown role may use nothing, `false` if it may use everything.
    pub fail_closed: bool,
    /// Role of callers without an account.
    pub default_role: String,
    /// Provider of the rules.
    pub provider: Option<AuthorizationProviderConfig>,
    #[serde(skip)]
    rules: OnceLock<Arc<AccessRules>>,
}

impl Default for AuthorizationConfig {
    fn default() -> Self {
        Self {
            enabled: false,
            fail_closed: true,
            default_role: "user".to_owned(),
            provider: None,
            rules: OnceLock::new(),
        }
    }
}

/// Provider of the rules.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct AuthorizationProviderConfig {
    /// Name of the provider; only [`RBAC_PROVIDER`] is supported.
    #[serde(rename = "use")]
    pub kind: String,
    /// Settings of the provider: `roles`.
    pub config: OpenKeys,
}

impl AuthorizationConfig {
    /// Returns the rules; `None` if they are disabled.
    pub fn rules(&self) -> Option<&Arc<AccessRules>> {
        self.enabled.then(|| {
            self.rules
                .get_or_init(|| Arc::new(self.read(&mut Checker::default())))
        })
    }

    /// Checks a section that is enabled.
    pub(super) fn check(&self, check: &mut Checker) {
        if !self.enabled {
            return;
        }
        let kind = self.provider.as_ref().map_or("", |provider| &provider.kind);
        if kind != RBAC_PROVIDER {
            check.under("provider", |check| {
                check.refuse("use", format!("{kind:?}"), RBAC_PROVIDER);
            });
            return;
        }
        let rules = self.read(check);
        if !rules.roles.contains_key(&self.default_role) {
            let names: Vec<&str> = rules.roles.keys().map(String::as_str).collect();
            let allowed = format!("one of the roles: {}", names.join(", "));
            check.refuse("default_role", format!("{:?}", self.default_role), allowed);
        }
    }

    /// Reads the roles. What is not valid is reported and allows nothing.
    fn read(&self, check: &mut Checker) -> AccessRules {
        let mut roles = BTreeMap::new();
        let none = OpenKeys::default();
        let config = self
            .provider
            .as_ref()
            .map_or(&none, |provider| &provider.config);
        check.under("provider", |check| {
            check.under("config", |check| {
                for key in config.keys().filter(|key| *key != "roles") {
                    check.refuse(key, "an unknown key", "roles");
                }
                match config.get("roles") {
                    Some(Value::Object(found)) if !found.is_empty() => {
                        check.under("roles", |check| {
                            for (name, role) in found {
                                roles.insert(name.clone(), RoleRules::read(name, role, check));
                            }
                        })
                    }
                    _ => check.refuse(
                        "roles",
                        "no map with a role",
                        "a map from roles to their rules",
                    ),
                }
            });
        });
        AccessRules {
            fail_closed: self.fail_closed,
            default_role: self.default_role.clone(),
            roles,
        }
    }
}

/// Rules of all roles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRules {
    fail_closed: bool,
    /// Role of callers without an account.
    pub default_role: String,
    roles: BTreeMap<String, RoleRules>,
}

impl AccessRules {
    /// Returns the rules of a role. An unknown role may use nothing, or everything if the section
    /// does not fail closed.
    pub fn of_role(&self, role: &str) -> RoleRules {
        match self.roles.get(role) {
            Some(rules) => rules.clone(),
            None if self.fail_closed => RoleRules::nothing(),
            None => RoleRules::default(),
        }
    }
}

/// Rules of one role; by default everything is allowed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoleRules {
    /// Names of tools.
    pub tools: NameRule,
    /// Names of models.
    pub models: NameRule,
    /// Names of skills.
    pub skills: NameRule,
    /// Commands, under the name [`COMMANDS`].
    pub sandbox: NameRule,
    /// Names of MCP servers.
    pub mcp_servers: NameRule,
    /// Permissions of routes, such as `runs:create`.
    pub routes: NameRule,
}

impl RoleRules {
    /// Rules that allow nothing.
    pub fn nothing() -> Self {
        let none = NameRule::nothing;
        Self {
            tools: none(),
            models: none(),
            skills: none(),
            sandbox: none(),
            mcp_servers: none(),
            routes: none(),
        }
    }

    fn read(name: &str, role: &Value, check: &mut Checker) -> Self {
        let Some(sections) = role.as_object() else {
            check.refuse(
                name,
                "no map",
                "a map from sections to rules; `{}` allows everything",
            );
            return Self::nothing();
        };
        let mut rules = Self::default();
        check.under(name, |check| {
            for (section, rule) in sections {
                let place = match section.as_str() {
                    "tools" => &mut rules.tools,
                    "models" => &mut rules.models,
                    "skills" => &mut rules.skills,
                    "sandbox" => &mut rules.sandbox,
                    "mcp_servers" => &mut rules.mcp_servers,
                    "routes" => &mut rules.routes,
                    _ => {
                        let known = "tools, models, skills, sandbox, mcp_servers, routes";
                        check.refuse(section, "an unknown section", known);
                        continue;
                    }
                };
                *place = NameRule::read(section, rule, check);
            }
        });
        rules
    }
}

/// Rule about names: those that are allowed, except those that are denied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct NameRule {
    /// Allowed names; `None` means all.
    allow: Option<Vec<String>>,
    /// Denied names.
    deny: Vec<String>,
}

impl NameRule {
    /// A rule that allows no name.
    pub fn nothing() -> Self {
        Self {
            allow: Some(Vec::new()),
            deny: Vec::new(),
        }
    }

    /// Reports whether the rule allows a name. Case counts.
    pub fn allows(&self, name: &str) -> bool {
        let names = |list: &[String]| list.iter().any(|known| known == name);
        self.allow.as_deref().is_none_or(names) && !names(&self.deny)
    }

    /// `true` if the rule allows every name.
    pub fn allows_all(&self) -> bool {
        self.allow.is_none() && self.deny.is_empty()
    }

    fn read(section: &str, rule: &Value, check: &mut Checker) -> Self {
        let Some(keys) = rule.as_object() else {
            check.refuse(section, "no map", "a map with `allow` and `deny`");
            return Self::nothing();
        };
        let mut read = Self::default();
        check.under(section, |check| {
            for (key, value) in keys {
                match (key.as_str(), names_of(value)) {
                    ("allow", _) if matches!(value, Value::Bool(true)) || value == "*" => {}
                    ("allow", _) if *value == Value::Bool(false) => read.allow = Some(Vec::new()),
                    ("allow", Some(names)) => read.allow = Some(names),
                    ("deny", Some(names)) => read.deny = names,
                    ("allow", None) => {
                        check.refuse("allow", value, "a list of names, \"*\", true or false");
                        read.allow = Some(Vec::new());
                    }
                    ("deny", None) => {
                        check.refuse("deny", value, "a list of names");
                        read.allow = Some(Vec::new());
                    }
                    _ => {
                        check.refuse(key, "an unknown key", "allow, deny");
                        read.allow = Some(Vec::new());
                    }
                }
            }
        });
        read
    }
}

fn names_of(value: &Value) -> Option<Vec<String>> {
    let name = |value: &Value| value.as_str().map(str::to_owned);
    value.as_array()?.iter().map(name).collect()
}

#[cfg(test)]
#[path = "authorization_tests.rs"]
mod tests;
