//! Which hosts pass, by every spelling, and that nothing that is no host does.

use proptest::prelude::*;

use super::*;

fn rules(entries: &[&str]) -> HostRules {
    HostRules::only(entries).unwrap()
}

fn target(rules: &HostRules, named: &str) -> Result<String, Denied> {
    rules
        .target(named, Some(80))
        .map(|target| target.to_string())
}

#[test]
fn listed_names_pass_in_every_spelling_and_no_others() {
    let rules = rules(&[
        "PyPI.org",
        "*.pythonhosted.org",
        "registry.npmjs.org:4443",
        "any.example:*",
        "bücher.example",
    ]);
    for (named, wanted) in [
        ("pypi.org", "pypi.org:80"),
        ("PYPI.ORG:443", "pypi.org:443"),
        ("pypi.org.:443", "pypi.org:443"),
        ("files.pythonhosted.org:443", "files.pythonhosted.org:443"),
        ("a.b.pythonhosted.org:443", "a.b.pythonhosted.org:443"),
        ("registry.npmjs.org:4443", "registry.npmjs.org:4443"),
        ("any.example:22", "any.example:22"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example:443"),
    ] {
        assert_eq!(target(&rules, named).as_deref(), Ok(wanted), "{named}");
    }
    for named in [
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
                target(&rules, named),
                Err(Denied::NotListed(_) | Denied::Malformed)
            ),
            "{named}"
        );
    }
}

#[test]
fn what_is_no_host_is_refused_whatever_a_parser_might_make_of_it() {
    let all = [
        rules(&["pypi.org", "*.pypi.org:*", "0.0.0.0/0:*", "::/0:*"]),
        HostRules::any_public(),
    ];
    for named in [
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
            assert_eq!(target(rules, named), Err(Denied::Malformed), "{named:?}");
        }
    }
    assert_eq!(
        all[0].target("pypi.org", None),
        Err(Denied::Malformed),
        "a port has to be named here"
    );
    let long = format!("{}.pypi.org", "a.".repeat(130).trim_end_matches('.'));
    assert_eq!(target(&all[0], &long), Err(Denied::Malformed));
}

#[test]
fn no_spelling_of_an_address_inside_passes_where_only_the_public_may_be_reached() {
    let rules = HostRules::any_public();
    for named in [
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
                    target(&rules, &format!("{named}{port}")),
                    Err(Denied::Private(_))
                ),
                "{named}{port}"
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
        "no web server is there"
    );
}

#[test]
fn listed_addresses_and_networks_are_reached_by_address_and_by_listed_names() {
    let rules = rules(&[
        "10.1.2.3:8080",
        "192.168.0.0/16",
        "[fd00::5]:443",
        "fd01::/16:*",
        "[fd03::/16]:8080",
        "mirror.corp",
    ]);
    for named in [
        "10.1.2.3:8080",
        "167838211:8080",
        "192.168.255.1",
        "[::ffff:192.168.7.7]:443",
        "[fd00::5]:443",
        "[fd01::9]:22",
        "[fd03::9]:8080",
    ] {
        assert!(target(&rules, named).is_ok(), "{named}");
    }
    for named in [
        "10.1.2.3",
        "10.1.2.4:8080",
        "192.169.0.1",
        "192.168.1.1:22",
        "[fd00::5]",
        "[fd02::1]",
        "[fd03::9]",
        "8.8.8.8",
    ] {
        assert!(target(&rules, named).is_err(), "{named}");
    }
    let mirror = rules.target("mirror.corp", Some(443)).unwrap();
    let found = |addresses: &[&str]| {
        rules.judge(
            &mirror,
            addresses
                .iter()
                .map(|address| address.parse().unwrap())
                .collect(),
        )
    };
    assert!(found(&["192.168.3.4"]).is_ok() && found(&["8.8.8.8", "192.168.3.4"]).is_ok());
    for inside in [
        &["10.1.2.3"][..],
        &["127.0.0.1"],
        &["8.8.8.8", "127.0.0.1"],
        &["169.254.169.254"],
        &["::ffff:127.0.0.1"],
        &["fd01::1", "::1"],
    ] {
        assert!(
            matches!(found(inside), Err(Denied::Private(_))),
            "{inside:?}"
        );
    }
    assert!(matches!(found(&[]), Err(Denied::Unknown(_))));
}

#[test]
fn an_entry_that_names_no_host_is_named() {
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
    fn whatever_is_named_only_the_listed_host_passes(named in any::<String>(), inner in "[a-zA-Z0-9.:\\[\\]-]{0,40}") {
        let rules = rules(&["pypi.org"]);
        for named in [named, inner] {
            if let Ok(found) = rules.target(&named, Some(443)) {
                prop_assert_eq!(found.host, "pypi.org");
            }
        }
    }
}
