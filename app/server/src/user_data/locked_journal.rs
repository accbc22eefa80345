//! Deletion of accounts while a server has locked the journal of runs.

use anyhow::Context as _;

/// Adds the request that deletes an account to an error of the journal, if a server is running.
/// `port` is that of the server.
pub(crate) fn with_request<T>(
    journal: anyhow::Result<T>,
    is_running: bool,
    port: u16,
) -> anyhow::Result<T> {
    if !is_running {
        return journal;
    }
    journal.with_context(|| {
        format!(
            "a running server has locked the journal of runs, so only that server can delete accounts. Create a key with \
             `deerflow keys create --user ADMINISTRATOR --admin`, find the id with `deerflow users list`, and run \
             `curl -X DELETE -H 'X-Api-Key: KEY' http://127.0.0.1:{port}/api/v1/admin/users/ID` with the address of the server; \
             or stop the server and repeat this command"
        )
    })
}
