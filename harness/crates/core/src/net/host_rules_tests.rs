//! Hosts and their spellings that the rules accept and refuse.

use proptest::prelude::*;

use super::*;

fn rules(entries: &[&str]) -> HostRules {
    HostRules::only(entries).unwrap()
}

fn target(rules: &HostRules, requested: &str) -> Result<String, Denied> {
    rules
        .target(requested, Some(80))
        .map(|target| target.to_string())
}

#[test]
fn listed_names_match_in_every_spelling() {
    let rules = rules(&[
        "PyPI.org",
        "*.pythonhosted.org",
        "registry.npmjs.org:4443",
        "any.example:*",
        "bücher.example",
    ]);
    for (requested, expected) in [
        ("pypi.org", "pypi.org:80"),
        ("PYPI.ORG:443", "pypi.org:443"),
        ("pypi.org.:443", "pypi.org:443"),
        ("files.pythonhosted.org:443", "files.pythonhosted.org:443"),
        ("a.b.pythonhosted.org:443", "a.b.pythonhosted.org:443"),
        ("registry.npmjs.org:4443", "registry.npmjs.org:4443"),
        ("any.example:22", "any.example:22"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
    ] {
        assert_eq!(
            target(&rules, requested).as_deref(),
            Ok(expected),
            "{requested}"
        );
    }
    for requested in [
        "pypi.org:22",
        "pypi.org:8080",
        "pythonhosted.org",
        "evilpythonhosted.org",
        "pythonhosted.org.evil.example",
        "pypi.org.evil.example",
        "evil-pypi.org",
        "registry.npmjs.org",
        "127.0.0.1",
        "8.8.8.8",
        "localhost",
        "xn--pypi-.org",
    ] {
        assert!(
            matches!(
                target(&rules, requested),
                Err(Denied::NotListed(_) | Denied::Malformed)
            ),
            "{requested}"
        );
    }
}

#[test]
fn invalid_hosts_are_refused() {
    let all = [
        rules(&["pypi.org", "*.pypi.org:*", "0.0.0.0/0:*", "::/0:*"]),
        HostRules::any_public(),
    ];
    for requested in [
        "",
        ":",
        ":80",
        "pypi.org:",
        "pypi.org:0",
        "pypi.org:65536",
        "pypi.org:+80",
        "pypi.org:080000",
        "pypi.org:80:80",
        "evil.example\0.pypi.org",
        "evil.example\0pypi.org",
        "pypi.org\0",
        "pypi.org\r\nHost: evil.example",
        "pypi.org\n",
        "pypi.org ",
        " pypi.org",
        "pypi.org\t",
        "evil.example%00.pypi.org",
        "evil.example%2epypi.org",
        "evil.example#.pypi.org",
        "evil.example?.pypi.org",
        "evil.example/.pypi.org",
        "evil.example\\.pypi.org",
        "user@pypi.org",
        "pypi.org@evil.example",
        "user:pass@pypi.org",
        "pypi..org",
        ".pypi.org",
        "pypi.org..",
        "*.pypi.org",
        "pypi。org",
        "ｐypi.org",
        "pypi.org\u{200b}",
        "[pypi.org]",
        "[::1",
        "::1]",
        "::1",
        "fe80::1%eth0",
        "[fe80::1%25eth0]",
        "[::1]80",
        "[::ffff:1.2.3.4.5]",
        "1.2.3.4.5",
        "256.1.1.1",
        "0x100000000",
        "{pypi.org}",
        "<pypi.org>",
        "\"pypi.org\"",
        "pypi.org,evil.example",
        "pypi.org;evil.example",
    ] {
        for rules in &all {
            assert_eq!(
                target(rules, requested),
                Err(Denied::Malformed),
                "{requested:?}"
            );
        }
    }
    assert_eq!(
        all[0].target("pypi.org", None),
        Err(Denied::Malformed),
        "the port is required here"
    );
    let long = format!("{}.pypi.org", "a.".repeat(130).trim_end_matches('.'));
    assert_eq!(target(&all[0], &long), Err(Denied::Malformed));
}

#[test]
fn internal_addresses_are_refused_in_every_spelling() {
    let rules = HostRules::any_public();
    for requested in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.1.",
        "0",
        "10.0.0.1",
        "192.168.1.1",
        "172.16.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[fd00::1]",
        "[fe80::1]",
        "[2002:7f00:1::]",
    ] {
        for port in ["", ":80", ":443"] {
            assert!(
                matches!(
                    target(&rules, &format!("{requested}{port}")),
                    Err(Denied::Private(_))
                ),
                "{requested}{port}"
            );
        }
    }
    assert_eq!(target(&rules, "8.8.8.8:443").as_deref(), Ok("8.8.8.8:443"));
    assert_eq!(target(&rules, "0x08080808").as_deref(), Ok("8.8.8.8:80"));
    assert_eq!(
        target(&rules, "[2606:4700::1111]:443").as_deref(),
        Ok("[2606:4700::1111]:443")
    );
    assert!(
        matches!(target(&rules, "mail.example:25"), Err(Denied::NotListed(_))),
        "not a port of web servers"
    );
}

#[test]
fn listed_networks_match_addresses_and_listed_names() {
    let rules = rules(&[
        "10.1.2.3:8080",
        "192.168.0.0/16",
        "[fd00::5]:443",
        "fd01::/16:*",
        "[fd03::/16]:8080",
        "mirror.corp",
    ]);
    for requested in [
        "10.1.2.3:8080",
        "167838211:8080",
        "192.168.255.1",
        "[::ffff:192.168.7.7]:443",
        "[fd00::5]:443",
        "[fd01::9]:22",
        "[fd03::9]:8080",
    ] {
        assert!(target(&rules, requested).is_ok(), "{requested}");
    }
    for requested in [
        "10.1.2.3",
        "10.1.2.4:8080",
        "192.169.0.1",
        "192.168.1.1:22",
        "[fd00::5]",
        "[fd02::1]",
        "[fd03::9]",
        "8.8.8.8",
    ] {
        assert!(target(&rules, requested).is_err(), "{requested}");
    }
    let mirror = rules.target("mirror.corp", Some(443)).unwrap();
    let parsed_target = |addresses: &[&str]| {
        rules.check_resolved(
            &mirror,
            addresses
                .iter()
                .map(|address| address.parse().unwrap())
                .collect(),
        )
    };
    assert!(
        parsed_target(&["192.168.3.4"]).is_ok()
            && parsed_target(&["8.8.8.8", "192.168.3.4"]).is_ok()
    );
    for inside in [
        &["10.1.2.3"][..],
        &["127.0.0.1"],
        &["8.8.8.8", "127.0.0.1"],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
        &["fd01::1", "::1"],
    ] {
        assert!(
            matches!(parsed_target(inside), Err(Denied::Private(_))),
            "{inside:?}"
        );
    }
    assert!(matches!(parsed_target(&[]), Err(Denied::Unknown(_))));
}

#[test]
fn invalid_entry_error_contains_the_entry() {
    for entry in [
        "",
        " ",
        "*",
        "*.",
        "http://pypi.org",
        "pypi.org/simple",
        "pypi.org:",
        "pypi.org:99999",
        "10.0.0.0/33",
        "10.0.0/8x",
        "a b",
        "*.*.org",
        "*.10.0.0.1",
        "a@b",
        "fd00::/129",
        "fd00::/8:443",
        "[fd00::/8",
    ] {
        assert_eq!(
            HostRules::only([entry]),
            Err(BadEntry(entry.to_owned())),
            "{entry:?}"
        );
    }
    assert!(
        HostRules::only(Vec::<String>::new())
            .unwrap()
            .target("pypi.org", Some(443))
            .is_err()
    );
}

proptest! {
    #[test]
    fn arbitrary_target_passes_only_if_listed(requested in any::<String>(), inner in "[a-zA-Z0-9.:\\[\\]-]{0,40}") {
        let rules = rules(&["pypi.org"]);
        for requested in [requested, inner] {
            if let Ok(parsed_target) = rules.target(&requested, Some(443)) {
                prop_assert_eq!(parsed_target.host, "pypi.org");
            }
        }
    }
}
