//! Table of internal and public URLs.

use super::*;

/// URLs of internal hosts, in every spelling that URL parsers accept. A fetcher for models must
/// call none of them.
const INTERNAL_URLS: &[&str] = &[
    // Loopback addresses in decimal, octal and hexadecimal notation, and with omitted parts.
    "http://127.0.0.1/",
    "http://127.0.0.1:80/",
    "http://127.0.0.1:443",
    "https://127.0.0.1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.255.255.254/",
    "http://127.000.000.001/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://017700000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://0X7F000001/",
    "http://0x7f.0x0.0x0.0x1/",
    "http://2130706433/",
    "http://0x7f.0.1/",
    "http://0177.1/",
    "http://127.0x1/",
    "http://127.0.0.1./",
    "http://127.1./",
    "http://2130706433./",
    // Percent encoding, full-width digits, ideographic dots, tabs and backslashes.
    "http://%31%32%37.0.0.1/",
    "http://127%2e0%2e0%2e1/",
    "http://127%2E0.0.1/",
    "http://１２７.０.０.１/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://127．0．0．1/",
    "http://127｡0｡0｡1/",
    "http://12\t7.0.0.1/",
    "http://127.0.\n0.1/",
    "  http://127.0.0.1/  ",
    "http:\\\\127.0.0.1\\",
    "http:/127.0.0.1/",
    "http:127.0.0.1/",
    "http:////127.0.0.1/",
    "HTTP://127.0.0.1/",
    "http://127.0.0.1?x=http://example.com/",
    "http://127.0.0.1#example.com",
    "http://127.0.0.1\\@example.com/",
    // Names of this machine.
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://localhost:8001/",
    "http://a.localhost/",
    "http://a.b.localhost./",
    "http://ｌｏｃａｌｈｏｓｔ/",
    "http://loc%61lhost/",
    // Unspecified and broadcast addresses.
    "http://0/",
    "http://0.0.0.0/",
    "http://0.0.0.0:80/",
    "http://00000000/",
    "http://0x0/",
    "http://0.1.2.3/",
    "http://255.255.255.255/",
    "http://4294967295/",
    "http://240.0.0.1/",
    "http://224.0.0.1/",
    "http://239.255.255.250/",
    // Private networks.
    "http://10.0.0.1/",
    "http://10.255.255.255/",
    "http://167772161/",
    "http://0xa.1/",
    "http://012.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.255/",
    "http://2886729729/",
    "http://192.168.0.1/",
    "http://192.168.1.1:8080/",
    "http://3232235777/",
    "http://0xc0a80101/",
    "http://0300.0250.1.1/",
    "http://192.168.257/",
    "http://192.11010305/",
    // Carrier-grade NAT and reserved networks.
    "http://100.64.0.1/",
    "http://100.127.255.255/",
    "http://192.0.0.1/",
    "http://192.0.0.192/",
    "http://192.0.2.1/",
    "http://192.88.99.1/",
    "http://198.18.0.1/",
    "http://198.19.255.255/",
    "http://198.51.100.1/",
    "http://203.0.113.1/",
    // Cloud metadata services.
    "http://169.254.169.254/latest/meta-data/",
    "http://169.254.169.254./",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0xa9.0xfe.0xa9.0xfe/",
    "http://0251.0376.0251.0376/",
    "http://169.254.43518/",
    "http://169.16689662/",
    "http://169.254.170.2/v2/credentials",
    "http://169.254.0.1/",
    "http://100.100.100.200/latest/meta-data/",
    "http://168.63.129.16/machine",
    "http://metadata/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./",
    "http://instance-data/latest/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[fe80::a9fe:a9fe]/",
    // The same in IPv6.
    "http://[::1]/",
    "http://[::1]:8001/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[0000:0000:0000:0000:0000:0000:0000:0001]/",
    "http://[::]/",
    "http://[::127.0.0.1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[::FFFF:7F00:0001]/",
    "http://[0:0:0:0:0:ffff:7f00:1]/",
    "http://[::ffff:10.0.0.1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[::ffff:0:127.0.0.1]/",
    "http://[::7f00:1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[64:ff9b::10.1.1.1]/",
    "http://[64:ff9b:1::1]/",
    "http://[64:ff9b:1::a9fe:a9fe]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:a9fe:a9fe::1]/",
    "http://[2002:c0a8:101::1]/",
    "http://[2002:a00:1::]/",
    "http://[2001::1]/",
    "http://[2001:0:7f00:1::1]/",
    "http://[2001:db8::1]/",
    "http://[2001:10::1]/",
    "http://[2001:2::1]/",
    "http://[3fff::1]/",
    "http://[2a00::5efe:a00:1]/",
    "http://[2a00::200:5efe:7f00:1]/",
    "http://[fc00::1]/",
    "http://[fd12:3456:789a::1]/",
    "http://[fe80::1]/",
    "http://[febf::1]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[ff0e::1]/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[4000::1]/",
    // URLs with credentials.
    "http://example.com@127.0.0.1/",
    "http://ann:pw@example.com/",
    "http://ann@example.com/",
    "http://:pw@example.com/",
    "https://example.com%00@127.0.0.1/",
    // Other schemes, and none.
    "ftp://example.com/",
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "gopher://127.0.0.1:6379/_x",
    "dict://127.0.0.1:11211/",
    "ldap://example.com/",
    "data:text/html,x",
    "javascript:alert(1)",
    "jar:http://example.com!/",
    "about:blank",
    "ws://example.com/",
    "//example.com/",
    "/etc/passwd",
    "example.com",
    "",
    " ",
    "http://",
    "http:///",
    "https://?x",
    "http://[fe80::1%25eth0]/",
    "http://[::1",
    "http://::1/",
    "http://256.256.256.256/",
    "http://1.2.3.4.5/",
    "http://0x100000000/",
    "http://exa mple.com/",
    "http://example.com\u{0}.evil.test/",
    "http://example.com%0d%0aX-Y:z/",
    "http://example.com:99999/",
    // Ports of other protocols.
    "http://example.com:22/",
    "http://example.com:25/",
    "http://example.com:1/",
    "http://example.com:0/",
    "https://example.com:110/",
    "http://example.com:445/",
    "http://example.com:993/",
    "http://example.com:6000/",
    "http://example.com:6667/",
    "http://example.com:2049/",
];

fn strict() -> Egress {
    Egress {
        ports: Ports::Web,
        ..Egress::default()
    }
}

#[test]
fn every_spelling_of_an_internal_url_is_refused() {
    assert!(INTERNAL_URLS.len() >= 150, "{}", INTERNAL_URLS.len());
    let allowed: Vec<&&str> = INTERNAL_URLS
        .iter()
        .filter(|address| strict().read(address).is_ok())
        .collect();
    assert!(allowed.is_empty(), "{allowed:?}");
}

#[test]
fn public_urls_are_accepted() {
    for address in [
        "http://example.com",
        "https://example.com/a?b=c#d",
        "https://example.com:8443/",
        "http://93.184.216.34:8080/",
        "http://1.1/",
        "https://[2606:2800:220:1::1]/",
        "https://bücher.example/",
        "http://[::ffff:93.184.216.34]/",
        "http://[64:ff9b::8.8.8.8]/",
        "http://172.32.0.1/",
        "http://notlocalhost/",
        "http://example.com./",
        "http://example.com/@127.0.0.1",
    ] {
        assert!(
            strict().read(address).is_ok(),
            "{address}: {:?}",
            strict().read(address)
        );
    }
    assert_eq!(
        strict().read(&format!("http://example.com/{}", "a".repeat(MAX_URL_BYTES))),
        Err(Forbidden::NoWebAddress)
    );
}

#[test]
fn trusted_hosts_bypass_address_and_port_checks() {
    let egress = Egress {
        hosts: ["wiki.corp", "*.inner.corp", "10.0.0.7", "::1"]
            .map(str::to_owned)
            .to_vec(),
        ..strict()
    };
    for address in [
        "http://wiki.corp:25/",
        "http://WIKI.corp./",
        "http://a.b.inner.corp",
        "http://10.0.0.7:22/",
        "http://[::1]/",
        "http://0xa.7",
    ] {
        assert!(egress.read(address).is_ok(), "{address}");
    }
    let home: IpAddr = "10.0.0.1".parse().unwrap();
    assert!(egress.allows("wiki.corp", home) && egress.allows("x.inner.corp", home));
    for host in [
        "wiki.corp.evil.test",
        "evilwiki.corp",
        "inner.corp",
        "xinner.corp",
        "10.0.0.8",
        "",
    ] {
        assert!(!egress.allows(host, home), "{host}");
    }
    assert!(
        egress.read("http://ann@wiki.corp/").is_err() && egress.read("ftp://wiki.corp/").is_err()
    );
}

#[test]
fn name_with_one_internal_address_is_refused() {
    let at = |all: &[&str]| {
        strict().check_resolved(
            "x.test",
            all.iter().map(|address| address.parse().unwrap()).collect(),
        )
    };
    assert_eq!(
        at(&["93.184.216.34"]),
        Ok(vec!["93.184.216.34".parse().unwrap()])
    );
    assert_eq!(
        at(&["93.184.216.34", "127.0.0.1"]),
        Err(Forbidden::Private("x.test".to_owned()))
    );
    assert_eq!(at(&[]), Err(Forbidden::Unknown("x.test".to_owned())));
    let anywhere = Egress {
        allow_private: true,
        ..strict()
    };
    assert!(
        anywhere.read("http://localhost/").is_ok()
            && anywhere.read("http://localhost:22/").is_err()
    );
}
