//! Tests of addresses, switches and access rules.

use super::*;

fn settings(variables: &[(&str, &str)]) -> Result<Settings, SettingsError> {
    Settings::from_environment(&Environment::of("/work-dir", variables.iter().copied()))
}

#[test]
fn an_empty_environment_serves_this_machine_on_8001() {
    let settings = settings(&[]).unwrap();
    assert_eq!((settings.host.as_str(), settings.port), ("127.0.0.1", 8001));
    assert_eq!(settings.home, PathBuf::from("/work-dir/.deer-flow"));
    assert!(settings.docs_enabled && !settings.auth_disabled && settings.cors_origins.is_empty());
    assert!(settings.allowed_hosts.is_empty());
    assert_eq!(settings.exposure().unwrap(), Exposure::Loopback);
}

#[test]
fn values_are_read_from_the_variables_deerflow_uses() {
    let settings = settings(&[
        ("GATEWAY_PORT", "9000"),
        ("DEER_FLOW_HOME", "data"),
        ("GATEWAY_ALLOWED_HOSTS", "box.lan, *"),
        ("GATEWAY_CORS_ORIGINS", " http://a.test/ ,,http://b.test"),
        ("GATEWAY_ENABLE_DOCS", "false"),
        ("DEER_FLOW_AUTH_DISABLED", "1"),
    ])
    .unwrap();
    assert_eq!(settings.port, 9000);
    assert_eq!(settings.home, PathBuf::from("/work-dir/data"));
    assert_eq!(settings.allowed_hosts, ["box.lan", "*"]);
    assert_eq!(settings.cors_origins, ["http://a.test", "http://b.test"]);
    assert!(!settings.docs_enabled);
    assert_eq!(settings.exposure().unwrap(), Exposure::LoopbackAuthDisabled);
}

#[test]
fn invalid_values_are_rejected_with_variable_name() {
    let error = settings(&[("GATEWAY_PORT", "80000")])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "environment variable GATEWAY_PORT is \"80000\", allowed: a port from 0 to 65535"
    );
    assert!(settings(&[("DEER_FLOW_ALLOW_INSECURE_BIND", "maybe")]).is_err());
    assert!(settings(&[("DEER_FLOW_PROJECT_ROOT", "/does/not/exist")]).is_err());
}

#[test]
fn only_the_value_1_disables_authentication() {
    for word in ["", "0", "true", "yes", "on", " 1", "01", "maybe"] {
        let settings = settings(&[("DEER_FLOW_AUTH_DISABLED", word)]).unwrap();
        assert!(!settings.auth_disabled, "{word:?}");
    }
}

#[test]
fn production_ignores_disabled_authentication() {
    for name in ["DEER_FLOW_ENV", "ENVIRONMENT"] {
        for word in ["prod", "Production"] {
            assert!(
                !settings(&[("DEER_FLOW_AUTH_DISABLED", "1"), (name, word)])
                    .unwrap()
                    .auth_disabled
            );
        }
    }
    let development_wins = [
        ("DEER_FLOW_AUTH_DISABLED", "1"),
        ("DEER_FLOW_ENV", "dev"),
        ("ENVIRONMENT", "prod"),
    ];
    assert!(settings(&development_wins).unwrap().auth_disabled);
}

#[test]
fn remote_clients_need_key_unless_two_switches_allow_all() {
    for host in [
        "0.0.0.0",
        "::",
        "192.168.1.5",
        "example.test",
        "::ffff:10.0.0.1",
    ] {
        let error = settings(&[("GATEWAY_HOST", host), ("DEER_FLOW_AUTH_DISABLED", "1")])
            .unwrap()
            .exposure()
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(host) && error.contains("DEER_FLOW_ALLOW_INSECURE_BIND=1"),
            "{error}"
        );
        let both = [
            ("GATEWAY_HOST", host),
            ("DEER_FLOW_AUTH_DISABLED", "1"),
            ("DEER_FLOW_ALLOW_INSECURE_BIND", "1"),
        ];
        let open = settings(&both).unwrap();
        assert_eq!(
            (open.exposure().unwrap(), open.key_rule()),
            (Exposure::Anywhere, KeyRule::Off)
        );
        for named in [&both[..1], &[both[0], both[2]]] {
            let closed = settings(named).unwrap();
            assert_eq!(
                (closed.exposure().unwrap(), closed.key_rule()),
                (Exposure::WithKey, KeyRule::Required)
            );
        }
    }
    for host in [
        "127.0.0.1",
        "127.8.8.8",
        "::1",
        "[::1]",
        "localhost",
        "::ffff:127.0.0.1",
    ] {
        let near = settings(&[("GATEWAY_HOST", host)]).unwrap();
        assert_eq!(
            (near.exposure().unwrap(), near.key_rule()),
            (Exposure::Loopback, KeyRule::Optional),
            "{host}"
        );
    }
}

#[test]
fn default_database_is_in_home_and_others_in_project() {
    let settings = settings(&[("DEER_FLOW_HOME", "/home-dir")]).unwrap();
    let mut database = DatabaseConfig::default();
    assert_eq!(
        settings.sqlite_dir(&database),
        PathBuf::from("/home-dir/data")
    );
    database.sqlite_dir = PathBuf::from("db");
    assert_eq!(
        settings.sqlite_dir(&database),
        PathBuf::from("/work-dir/db")
    );
    database.sqlite_dir = PathBuf::from("/elsewhere");
    assert_eq!(settings.sqlite_dir(&database), PathBuf::from("/elsewhere"));
}
