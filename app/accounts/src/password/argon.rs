//! Argon2id in the PHC string format.

use std::sync::LazyLock;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use subtle::ConstantTimeEq;

/// Memory in KiB, number of passes, and lanes of new hashes.
const MEMORY: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Length of a hash, in bytes.
const LENGTH: usize = 32;
/// Maximum costs of a hash that is verified: a damaged row must not use up the memory.
const MAX_MEMORY: u32 = 1 << 18;
const MAX_PASSES: u32 = 16;
const MAX_LANES: u32 = 16;

const PREFIX: &str = "$argon2id$v=19$";

/// Hash that no password has: its bits are not the result of a computation.
static DUMMY: LazyLock<String> = LazyLock::new(|| encode(&[0; 16], &[0; LENGTH]));

/// Returns a hash of the current costs that no password matches.
pub(super) fn dummy() -> &'static str {
    &DUMMY
}

/// Reports whether a hash claims to be of this algorithm.
pub(super) fn is_own(stored: &str) -> bool {
    stored.starts_with("$argon2")
}

/// Reports whether a hash has the current algorithm and costs.
pub(super) fn is_current(stored: &str) -> bool {
    stored.starts_with(&format!("{PREFIX}{}$", costs()))
}

/// Computes a hash; `None` if the computation is not possible, for lack of memory.
pub(super) fn hash(password: &[u8], salt: &[u8; 16]) -> Option<String> {
    let params = Params::new(MEMORY, PASSES, LANES, Some(LENGTH)).ok()?;
    let mut hash = [0; LENGTH];
    compute(params, password, salt, &mut hash)?;
    Some(encode(salt, &hash))
}

/// Verifies a password against a hash; a hash that cannot be read does not match.
pub(super) fn verify(password: &[u8], stored: &str) -> bool {
    let Some((params, salt, expected)) = decode(stored) else {
        return false;
    };
    let mut hash = vec![0; expected.len()];
    compute(params, password, &salt, &mut hash).is_some() && hash.ct_eq(&expected).into()
}

fn compute(params: Params, password: &[u8], salt: &[u8], hash: &mut [u8]) -> Option<()> {
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(password, salt, hash)
        .ok()
}

fn costs() -> String {
    format!("m={MEMORY},t={PASSES},p={LANES}")
}

fn encode(salt: &[u8], hash: &[u8]) -> String {
    let base64 = |bytes| STANDARD_NO_PAD.encode(bytes);
    format!("{PREFIX}{}${}${}", costs(), base64(salt), base64(hash))
}

/// Parses costs, salt and hash.
fn decode(stored: &str) -> Option<(Params, Vec<u8>, Vec<u8>)> {
    let mut parts = stored.strip_prefix(PREFIX)?.split('$');
    let (costs, salt, hash) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let mut costs = costs.split(',');
    let mut cost = |name: &str, maximum: u32| {
        let value: u32 = costs.next()?.strip_prefix(name)?.parse().ok()?;
        (value <= maximum).then_some(value)
    };
    let (memory, passes) = (cost("m=", MAX_MEMORY)?, cost("t=", MAX_PASSES)?);
    let lanes = cost("p=", MAX_LANES)?;
    if costs.next().is_some() {
        return None;
    }
    let salt = STANDARD_NO_PAD.decode(salt).ok()?;
    let hash = STANDARD_NO_PAD.decode(hash).ok()?;
    let params = Params::new(memory, passes, lanes, Some(hash.len())).ok()?;
    Some((params, salt, hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hash_of_reference_implementation_is_verified() {
        // Computed by the reference implementation's `argon2` program:
        // password `password`, salt `somesalt`, -id -t 2 -m 16 -p 1.
        let stored = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ\
            $CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc";
        assert!(verify(b"password", stored));
        assert!(!verify(b"passwore", stored));
        assert!(!is_current(stored));
    }

    #[test]
    fn broken_hash_never_matches() {
        let good = hash(b"x", &[7; 16]).unwrap();
        assert!(verify(b"x", &good) && is_current(&good));
        for broken in [
            "$argon2id$",
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
            "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$",
            "$argon2id$v=19$m=4294967295,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=0,t=0,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            &good.replace("argon2id", "argon2i"),
            &good[..good.len() - 1],
            &format!("{good}$"),
            &good.replace("p=1", "p=1,x=2"),
            &good.replace("$m=", "$M="),
        ] {
            assert!(!verify(b"x", broken), "{broken}");
        }
    }
}
