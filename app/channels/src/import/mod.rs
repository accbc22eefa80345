//! Import of the conversations in DeerFlow's `store.json`.

mod parse;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use chrono::{DateTime, Utc};
use deerflow_domain::channels::{Account, ChannelStoreError, Conversation, ConversationStore};
use deerflow_domain::threads::{ThreadRecord, ThreadStore};
use harness::runtime::actor_context::Owner;
use harness::runtime::compute::{Size, heavy_poll, offloading};
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

use crate::keys::thread_key;
use crate::people::user_of_place;
use crate::platform::ChatKind;
use parse::{Entry, Parsed, parse};

/// File of DeerFlow, and file with the accounts whose conversations were imported, below the home.
const FILE: &str = "channels/store.json";
const MARKER: &str = "channels/imported.json";
/// Maximum size of a file.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reason why nothing was imported.
#[derive(Debug, thiserror::Error)]
enum ImportError {
    #[error("the file cannot be read or written: {0}")]
    File(#[from] io::Error),
    #[error("the file is not a JSON object: {0}")]
    Malformed(#[from] serde_json::Error),
    #[error(transparent)]
    Store(#[from] ChannelStoreError),
}

/// Result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Imported {
    conversations: u64,
    skipped: usize,
}

/// Imports the conversations of each account once. An import that failed or was interrupted is
/// repeated at the next start, which does not change the conversations that exist.
#[derive(Debug)]
pub(crate) struct Importer {
    home: PathBuf,
    /// `true` after a failure was logged: the file is the same for all accounts.
    warned: Mutex<bool>,
}

impl Importer {
    /// Creates an importer of the file below `home`.
    pub(crate) fn new(home: PathBuf) -> Self {
        Self {
            home,
            warned: Mutex::new(false),
        }
    }

    /// Imports the conversations of an account, unless that was done before or there is no file. A
    /// failure is logged.
    pub(crate) async fn import(
        &self,
        account: &Account,
        conversations: &dyn ConversationStore,
        threads: &dyn ThreadStore,
        now: DateTime<Utc>,
    ) {
        let mut warned = self.warned.lock().await;
        match self.run(account, conversations, threads, now).await {
            Ok(None) => {}
            Ok(Some(Imported {
                conversations,
                skipped,
            })) => tracing::info!(
                %account,
                conversations,
                skipped,
                "imported the conversations of {FILE}"
            ),
            Err(error) if *warned => {
                tracing::debug!(%error, %account, "{FILE} was not imported");
            }
            Err(error) => {
                *warned = true;
                tracing::warn!(%error, %account, "{FILE} was not imported; the next start tries again");
            }
        }
    }

    async fn run(
        &self,
        account: &Account,
        conversations: &dyn ConversationStore,
        threads: &dyn ThreadStore,
        now: DateTime<Utc>,
    ) -> Result<Option<Imported>, ImportError> {
        let marker = self.home.join(MARKER);
        let Some(bytes) = read(&self.home.join(FILE)).await? else {
            return Ok(None);
        };
        // A malformed marker counts as absent.
        let mut done: BTreeMap<String, DateTime<Utc>> = match read(&marker).await? {
            Some(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
            None => BTreeMap::new(),
        };
        if done.contains_key(&account.to_string()) {
            return Ok(None);
        }
        let Parsed { entries, skipped } = offloading(async {
            heavy_poll(Size::bytes(bytes.len())).await;
            parse(&bytes, &account.provider)
        })
        .await?;
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            let thread = threads
                .get(&entry.thread_id, &Owner::None)
                .await
                .map_err(ChannelStoreError::from)?;
            let imported = conversation(account, entry, thread.as_ref(), now);
            found.extend(of_connected_owner(&imported));
            found.push(imported);
        }
        let imported = conversations.import(found).await?;
        done.insert(account.to_string(), now);
        write(&marker, &serde_json::to_vec(&done)?).await?;
        Ok(Some(Imported {
            conversations: imported,
            skipped,
        }))
    }
}

/// Converts an entry. Its owner is that of the thread if the thread is known as one of this chat;
/// else it is the user that the person or group has without a connection, and the runtime refuses
/// threads of others.
fn conversation(
    account: &Account,
    entry: Entry,
    thread: Option<&ThreadRecord>,
    now: DateTime<Utc>,
) -> Conversation {
    let owner = thread
        .filter(|thread| is_of_chat(&thread.metadata, &account.provider, &entry.chat))
        .and_then(|thread| thread.user_id.clone());
    let user_id = owner.unwrap_or_else(|| {
        // The file does not name the kind of the chat. Where direct chats have the id of their
        // person, the user is the one of later messages too.
        let kind = match &entry.person {
            Some(person) if *person == entry.chat => ChatKind::Direct,
            _ => ChatKind::Group,
        };
        user_of_place(&account.provider, "", kind, &entry.chat)
    });
    let updated_at = entry.updated_at.unwrap_or(now);
    Conversation {
        account: account.clone(),
        key: entry.key(),
        chat: entry.chat,
        topic: entry.topic,
        thread_id: entry.thread_id,
        user_id,
        options: Map::new(),
        question: None,
        created_at: entry.created_at.unwrap_or(updated_at),
        updated_at,
    }
}

/// Returns the same conversation for its owner as a connected user, whose conversations have keys of
/// their own.
fn of_connected_owner(imported: &Conversation) -> Option<Conversation> {
    let kinds = [ChatKind::Direct, ChatKind::Group];
    let is_unconnected = kinds.into_iter().any(|kind| {
        let provider = &imported.account.provider;
        user_of_place(provider, "", kind, &imported.chat) == imported.user_id
    });
    (!is_unconnected).then(|| Conversation {
        key: thread_key(&imported.key, Some(&imported.user_id)),
        ..imported.clone()
    })
}

fn is_of_chat(metadata: &Map<String, Value>, provider: &str, chat: &str) -> bool {
    let source = metadata.get("channel_source");
    let field = |name| source?.get(name)?.as_str();
    field("provider") == Some(provider) && field("chat_id") == Some(chat)
}

/// Reads a regular file; `None` if it does not exist.
async fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = match tokio::fs::metadata(path).await {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = tokio::fs::File::open(path).await?;
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).await?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!(
            "it has more than {MAX_BYTES} bytes"
        )));
    }
    Ok(Some(bytes))
}

/// Replaces a file.
async fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("json.new");
    tokio::fs::write(&new, bytes).await?;
    tokio::fs::rename(&new, path).await
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;
