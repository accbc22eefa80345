//! Rule of e-mail addresses.

use std::fmt;

/// Maximum length of an e-mail address, in characters.
pub const MAX_EMAIL: usize = 254;
/// Maximum lengths of the part before `@` and of one label of the domain (RFC 5321, RFC 1035).
const MAX_LOCAL: usize = 64;
const MAX_LABEL: usize = 63;

/// Reason why a text is no e-mail address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEmail {
    /// The text is too long.
    #[error("the e-mail address must have at most 254 characters")]
    TooLong,
    /// The text does not have the form of an address.
    #[error("this is not a valid e-mail address")]
    Malformed,
}

/// E-mail address in lower case, so that two addresses that differ in case only are equal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Email(String);

impl Email {
    /// Parses an address. Accepts a subset of what the web UI's own check (`zod`) accepts, because
    /// the UI rejects a profile with any other address.
    pub fn parse(text: &str) -> Result<Self, InvalidEmail> {
        if text.chars().count() > MAX_EMAIL {
            return Err(InvalidEmail::TooLong);
        }
        let (local, domain) = text.rsplit_once('@').ok_or(InvalidEmail::Malformed)?;
        if is_local(local) && is_domain(domain) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(InvalidEmail::Malformed)
        }
    }

    /// Wraps an address that a store returns.
    pub fn stored(text: String) -> Self {
        Self(text)
    }

    /// Returns the address.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the part before `@`.
    pub fn local(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(local, _)| local)
    }

    /// Returns the part after `@`.
    pub fn domain(&self) -> &str {
        self.0.rsplit_once('@').map_or("", |(_, domain)| domain)
    }
}

impl fmt::Display for Email {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_local(local: &str) -> bool {
    local.len() <= MAX_LOCAL
        && !local.starts_with('.')
        && !local.contains("..")
        && !local.ends_with(['.', '\''])
        && !local.is_empty()
        && local
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_'+-.".contains(&byte))
}

fn is_domain(domain: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= MAX_LABEL
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let is_top = |top: &str| top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic());
    domain
        .rsplit_once('.')
        .is_some_and(|(rest, top)| is_top(top) && rest.split('.').all(is_label))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_address_is_lower_cased() {
        for text in [
            "Ann.B+x_y-z'q1@Sub-1.Example.ORG",
            "default@test.local",
            "a@1x.de",
        ] {
            assert_eq!(
                Email::parse(text).map(|email| email.0),
                Ok(text.to_lowercase())
            );
        }
        let ann = Email::parse("Ann@X.org").unwrap();
        assert_eq!((ann.local(), ann.domain()), ("ann", "x.org"));
    }

    #[test]
    fn malformed_address_is_refused() {
        for text in [
            "",
            "@",
            "a@",
            "@b.org",
            "a@b",
            "a@b.c",
            "a@b.c1",
            "a@b.xn--p1ai",
            ".a@b.org",
            "a.@b.org",
            "a..b@c.org",
            "a@b..org",
            "a@.b.org",
            "a@-b.org",
            "a@b-.org",
            "a b@c.org",
            "a@b@c.org",
            "ä@b.org",
            "a@ä.org",
            "a@b.org ",
            " a@b.org",
            "a@b.org\n",
            "a'@b.org",
            "a!b@c.org",
            "\"a\"@b.org",
            "a@[127.0.0.1]",
            "a@b_c.org",
        ] {
            assert_eq!(Email::parse(text), Err(InvalidEmail::Malformed), "{text:?}");
        }
        let local_of_65 = format!("{}@b.org", "a".repeat(65));
        assert_eq!(Email::parse(&local_of_65), Err(InvalidEmail::Malformed));
    }

    #[test]
    fn address_of_255_characters_is_too_long() {
        let of = |length: usize| {
            let labels = format!("{0}.{0}.{0}", "d".repeat(60));
            let local = "l".repeat(length - labels.len() - 5);
            format!("{local}@{labels}.org")
        };
        assert_eq!(of(255).len(), 255);
        assert_eq!(Email::parse(&of(255)), Err(InvalidEmail::TooLong));
        assert!(Email::parse(&of(240)).is_ok());
    }
}
