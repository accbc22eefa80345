//! Rules of new passwords.

use super::email::Email;

/// Minimum length of a password, in characters.
pub const MIN_PASSWORD: usize = 8;
/// Maximum length of a password, in characters.
pub const MAX_PASSWORD: usize = 256;

/// Common passwords of at least [`MIN_PASSWORD`] characters, in lower case, one per line in byte
/// order. They stay in the program's read-only data: a search reads only the pages that it visits.
/// `common_passwords.LICENSE` states the sources.
const COMMON: &str = include_str!("common_passwords.txt");

/// Reason why a password is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPassword {
    /// Too short.
    #[error("the password must have at least 8 characters")]
    TooShort,
    /// Too long.
    #[error("the password must have at most 256 characters")]
    TooLong,
    /// Among the common passwords.
    #[error("this password is too common, choose another")]
    Common,
    /// Equal to the e-mail address or to the part before `@`.
    #[error("the password must not be the e-mail address")]
    IsEmail,
}

/// Checks a new password of the account with this e-mail. Letter case does not distinguish a
/// password from a common one or from the e-mail.
pub fn check_password(password: &str, email: &Email) -> Result<(), InvalidPassword> {
    let length = password.chars().count();
    if length < MIN_PASSWORD {
        return Err(InvalidPassword::TooShort);
    }
    if length > MAX_PASSWORD {
        return Err(InvalidPassword::TooLong);
    }
    let lower = password.to_lowercase();
    if lower == email.as_str() || lower == email.local() {
        return Err(InvalidPassword::IsEmail);
    }
    if is_common(&lower) {
        return Err(InvalidPassword::Common);
    }
    Ok(())
}

/// Searches the list by bisection over bytes: each step compares the line around the middle.
fn is_common(lower: &str) -> bool {
    let bytes = COMMON.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = bytes[low..middle]
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(low, |at| low + at + 1);
        let end = bytes[middle..high]
            .iter()
            .position(|byte| *byte == b'\n')
            .map_or(high, |at| middle + at);
        match bytes[start..end].cmp(lower.as_bytes()) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = (end + 1).min(high),
            std::cmp::Ordering::Greater => high = start,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(password: &str) -> Result<(), InvalidPassword> {
        check_password(password, &Email::parse("ann.miller@example.org").unwrap())
    }

    #[test]
    fn list_is_sorted_and_every_entry_is_found() {
        let lines: Vec<&str> = COMMON.lines().collect();
        assert!(lines.len() >= 10_000, "{}", lines.len());
        assert!(lines.is_sorted_by(|a, b| a < b));
        for line in lines {
            assert!(
                line.chars().count() >= MIN_PASSWORD && is_common(line),
                "{line}"
            );
        }
    }

    #[test]
    fn common_password_is_refused_in_any_case() {
        for common in [
            "password",
            "Password1",
            "QWERTYUIOP",
            "12345678",
            "iloveyou",
        ] {
            assert_eq!(check(common), Err(InvalidPassword::Common), "{common}");
        }
        for other in [
            "passworc",
            "0000000",
            "zzzzzzzzzzzzzzzzzzzzz",
            "\u{1F600}zzzzzzzz",
            "\n\n\n\n\n\n\n\n",
        ] {
            assert!(!is_common(other), "{other}");
        }
        assert!(!is_common(""));
    }

    #[test]
    fn length_is_counted_in_characters() {
        assert_eq!(check("1x2y3z4"), Err(InvalidPassword::TooShort));
        assert_eq!(check("ääääööö"), Err(InvalidPassword::TooShort));
        assert_eq!(check("ääääöööü"), Ok(()));
        assert_eq!(check(&"äx".repeat(128)), Ok(()));
        assert_eq!(check(&"x".repeat(257)), Err(InvalidPassword::TooLong));
    }

    #[test]
    fn email_and_its_local_part_are_refused() {
        for text in [
            "ann.miller@example.org",
            "Ann.Miller@Example.Org",
            "ann.MILLER",
        ] {
            assert_eq!(check(text), Err(InvalidPassword::IsEmail), "{text}");
        }
    }
}
