//! File with a generated password, which is never printed.

use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use deerflow_domain::accounts::Account;
use secrecy::{ExposeSecret as _, SecretString};

/// Name of the file in the data folder, as DeerFlow's reset command calls it.
const FILE: &str = "admin_initial_credentials.txt";

/// Writes e-mail and password to a file that only its owner can read, in place of an older one;
/// returns its path.
pub(super) fn write_credentials(
    home: &Path,
    account: &Account,
    password: &SecretString,
) -> anyhow::Result<String> {
    let path = home.join(FILE);
    let written = || {
        std::fs::create_dir_all(home)?;
        // The file has mode 0600 from its creation, and replaces a link instead of following it.
        let mut file = tempfile::NamedTempFile::new_in(home)?;
        let (email, password) = (&account.email, password.expose_secret());
        writeln!(file, "email: {email}\npassword: {password}")?;
        file.as_file().sync_all()?;
        file.persist(&path).map_err(|error| error.error)?;
        Ok::<_, std::io::Error>(())
    };
    written().with_context(|| {
        format!(
            "the password is set, but {} was not written; reset it again",
            path.display()
        )
    })?;
    Ok(path.display().to_string())
}
