//! Tests of the rules of roles.

use serde_json::json;

use super::*;

fn section(roles: Value) -> AuthorizationConfig {
    let section = json!({
        "enabled": true,
        "provider": { "use": RBAC_PROVIDER, "config": { "roles": roles } },
    });
    serde_json::from_value(section).unwrap()
}

/// Returns the keys that a section is refused for.
fn refused(section: &AuthorizationConfig) -> Vec<String> {
    let mut check = Checker::default();
    section.check(&mut check);
    let violations = check.into_violations().into_iter();
    violations
        .map(|violation| violation.path.join("."))
        .collect()
}

#[test]
fn allowed_names_are_used_except_denied_ones() {
    let section = section(json!({
        "admin": {},
        "user": {
            "tools": { "allow": ["ls", "bash"], "deny": ["bash"] },
            "models": { "allow": "*", "deny": ["big"] },
            "skills": { "allow": true },
            "sandbox": { "allow": false },
            "mcp_servers": { "deny": [] },
        },
    }));
    assert_eq!(refused(&section), Vec::<String>::new());
    let rules = section.rules().unwrap();
    let user = rules.of_role("user");
    assert!(user.tools.allows("ls") && !user.tools.allows("bash"));
    assert!(!user.tools.allows("LS") && !user.tools.allows("web_search"));
    assert!(user.models.allows("small") && !user.models.allows("big"));
    assert!(user.skills.allows_all() && user.mcp_servers.allows_all());
    assert!(!user.sandbox.allows(COMMANDS));
    assert!(user.routes.allows("runs:create"));
    assert_eq!(rules.of_role("admin"), RoleRules::default());
}

#[test]
fn unknown_role_uses_nothing_unless_open() {
    let mut section = section(json!({ "user": {} }));
    let unknown = section.rules().unwrap().of_role("guest");
    assert_eq!(unknown, RoleRules::nothing());
    assert!(!unknown.routes.allows("threads:read"));
    section.fail_closed = false;
    section.rules = OnceLock::new();
    let unknown = section.rules().unwrap().of_role("guest");
    assert_eq!(unknown, RoleRules::default());
}

#[test]
fn disabled_section_has_no_rules_and_no_errors() {
    let mut section = section(json!({ "user": { "tool": null } }));
    section.enabled = false;
    assert!(section.rules().is_none());
    assert_eq!(refused(&section), Vec::<String>::new());
}

#[test]
fn wrong_values_are_refused_with_their_key() {
    let key = "provider.config.roles";
    for (role, place) in [
        (json!(null), "user"),
        (json!({ "tool": {} }), "user.tool"),
        (json!({ "tools": null }), "user.tools"),
        (json!({ "tools": ["ls"] }), "user.tools"),
        (json!({ "tools": { "allow": null } }), "user.tools.allow"),
        (json!({ "tools": { "allow": "ls" } }), "user.tools.allow"),
        (
            json!({ "tools": { "allow": ["ls", 1] } }),
            "user.tools.allow",
        ),
        (json!({ "tools": { "deny": "*" } }), "user.tools.deny"),
        (json!({ "tools": { "deny": true } }), "user.tools.deny"),
        (json!({ "tools": { "only": [] } }), "user.tools.only"),
    ] {
        let section = section(json!({ "user": role }));
        assert_eq!(refused(&section), [format!("{key}.{place}")]);
        let user = section.rules().unwrap().of_role("user");
        if place.starts_with("user.tools") {
            assert!(!user.tools.allows("ls"), "{role}");
        }
    }
    for roles in [json!({}), json!(null), json!(["user"])] {
        let wrong = refused(&section(roles));
        assert_eq!(wrong, ["provider.config.roles", "default_role"]);
    }
}

#[test]
fn other_provider_and_unknown_default_role_are_refused() {
    let mut other = section(json!({ "user": {} }));
    other.provider.as_mut().unwrap().kind = "company:Policy".to_owned();
    assert_eq!(refused(&other), ["provider.use"]);
    let mut guest = section(json!({ "user": {} }));
    guest.default_role = "guest".to_owned();
    assert_eq!(refused(&guest), ["default_role"]);
}
