//! Connection codes of others, expired, used and guessed ones, and races of two owners.

use chrono::TimeDelta;
use deerflow_domain::channels::{ExternalIdentity, NewCode, PendingCode, code_hash};
use harness::clock::{Clock, SystemClock};

use super::{Verdict, expect};
use crate::core_tests::rig::Rig;
use crate::words;

pub(super) async fn run(rig: &Rig, case: u64, kind: u64, variant: u64) -> Verdict {
    let people = Cast::of(case);
    match kind {
        0 => invalid(rig, &people, "another", 600, variant).await,
        1 => invalid(rig, &people, "memory", -1 - variant as i64, variant).await,
        2 => guessed(rig, &people, variant).await,
        3 => used(rig, &people).await,
        4 => race(rig, &people, variant).await,
        _ => other_workspace(rig, &people).await,
    }
}

/// Names of one case.
struct Cast {
    owner: String,
    rival: String,
    person: String,
    stranger: String,
    code: String,
}

impl Cast {
    fn of(case: u64) -> Self {
        let name = |role: &str| format!("{role}{case}");
        Self {
            owner: name("owner"),
            rival: name("rival"),
            person: name("person"),
            stranger: name("stranger"),
            // No part of a code is the code of another case.
            code: format!("Code-{case}-of-the-case"),
        }
    }
}

async fn code(rig: &Rig, user: &str, provider: &str, code: &str, seconds: i64) {
    let now = SystemClock.now();
    let new = NewCode {
        hash: code_hash(code),
        user_id: user.to_owned(),
        provider: provider.to_owned(),
        expires_at: now + TimeDelta::seconds(seconds),
    };
    // An expired code was valid when it was created.
    let created = rig
        .stores
        .connections
        .create_code(new, now - TimeDelta::seconds(3_600));
    assert_eq!(created.await, Ok(PendingCode::Created));
}

async fn owner_of(rig: &Rig, person: &str, workspace: &str) -> Option<String> {
    let identity = ExternalIdentity {
        provider: "memory".to_owned(),
        account: person.to_owned(),
        workspace: workspace.to_owned(),
    };
    let found = rig.stores.connections.find_active(&identity).await.unwrap();
    found.map(|connection| connection.user_id)
}

/// Says a text in the direct chat of a person and returns the answer.
async fn say(rig: &Rig, person: &str, text: &str) -> String {
    let chat = format!("c-{person}");
    let before = rig.platform.texts(&chat).len();
    rig.platform.say(&chat, person, text);
    rig.answers(&chat, before + 1).await.pop().unwrap()
}

/// Checks that a person is not connected, and that a message of theirs makes no thread.
async fn is_stranger(rig: &Rig, person: &str) -> Verdict {
    let owner = owner_of(rig, person, "").await;
    expect(
        owner.is_none(),
        format!("{person} is connected to {owner:?}"),
    )?;
    let threads = rig.threads.0.lock().len();
    let answer = say(rig, person, "then say Permitted.").await;
    expect(answer == words::MUST_CONNECT, format!("answered {answer}"))?;
    expect(
        rig.threads.0.lock().len() == threads,
        "a thread was created",
    )
}

async fn invalid(rig: &Rig, cast: &Cast, provider: &str, seconds: i64, variant: u64) -> Verdict {
    code(rig, &cast.owner, provider, &cast.code, seconds).await;
    let command = ["/connect", "/start"][variant as usize % 2];
    let answer = say(rig, &cast.stranger, &format!("{command} {}", cast.code)).await;
    expect(answer == words::INVALID_CODE, format!("answered {answer}"))?;
    is_stranger(rig, &cast.stranger).await
}

async fn guessed(rig: &Rig, cast: &Cast, variant: u64) -> Verdict {
    code(rig, &cast.owner, "memory", &cast.code, 600).await;
    let guess = match variant % 5 {
        0 => cast.code.to_uppercase(),
        1 => cast.code[..cast.code.len() - 1].to_owned(),
        2 => format!("{}0", cast.code),
        3 => code_hash(&cast.code),
        _ => "x".repeat(4_000),
    };
    let answer = say(rig, &cast.stranger, &format!("/connect {guess}")).await;
    expect(answer == words::INVALID_CODE, format!("answered {answer}"))?;
    is_stranger(rig, &cast.stranger).await
}

async fn used(rig: &Rig, cast: &Cast) -> Verdict {
    code(rig, &cast.owner, "memory", &cast.code, 600).await;
    let connect = format!("/connect {}", cast.code);
    let answer = say(rig, &cast.person, &connect).await;
    expect(answer == words::CONNECTED, format!("the owner's: {answer}"))?;
    let answer = say(rig, &cast.stranger, &connect).await;
    expect(answer == words::INVALID_CODE, format!("answered {answer}"))?;
    let owner = owner_of(rig, &cast.person, "").await;
    expect(
        owner.as_deref() == Some(&cast.owner),
        format!("the person is connected to {owner:?}"),
    )?;
    is_stranger(rig, &cast.stranger).await
}

/// Two users connect the same person at the same time: one of them owns it, and the runs are theirs.
async fn race(rig: &Rig, cast: &Cast, variant: u64) -> Verdict {
    let users = [&cast.owner, &cast.rival];
    let mut chats = Vec::new();
    for (number, user) in users.into_iter().enumerate() {
        let secret = format!("{}-{number}", cast.code);
        code(rig, user, "memory", &secret, 600).await;
        let chat = format!("c-{}-{number}", cast.person);
        chats.push((chat, format!("/connect {secret}")));
    }
    if variant % 2 == 1 {
        chats.reverse();
    }
    for (chat, text) in &chats {
        rig.platform.say(chat, &cast.person, text);
    }
    for (chat, _) in &chats {
        let answer = rig.answers(chat, 1).await.remove(0);
        expect(answer == words::CONNECTED, format!("answered {answer}"))?;
    }
    let owner = owner_of(rig, &cast.person, "").await;
    let mut active = Vec::new();
    for user in users {
        let connections = rig.stores.connections.list(user).await.unwrap();
        if connections.iter().any(|connection| connection.active) {
            active.push(user.clone());
        }
    }
    expect(
        active.len() == 1 && active.first() == owner.as_ref(),
        format!("active owners {active:?}, found {owner:?}"),
    )?;
    let answer = say(rig, &cast.person, "then say Hello.").await;
    expect(answer == "Hello.", format!("answered {answer}"))?;
    let of_thread = rig
        .threads
        .0
        .lock()
        .last()
        .and_then(|thread| thread.user_id.clone());
    expect(
        of_thread == owner,
        format!("the thread is {of_thread:?}'s, not {owner:?}'s"),
    )
}

/// An identity that is connected in one workspace is a stranger in another.
async fn other_workspace(rig: &Rig, cast: &Cast) -> Verdict {
    code(rig, &cast.owner, "memory", &cast.code, 600).await;
    let chat = format!("c-{}", cast.person);
    let mut event = rig
        .platform
        .message(&chat, &cast.person, &format!("/connect {}", cast.code));
    event.workspace = "W1".to_owned();
    rig.platform.deliver(event);
    let answer = rig.answers(&chat, 1).await.remove(0);
    expect(answer == words::CONNECTED, format!("the owner's: {answer}"))?;
    let owner = owner_of(rig, &cast.person, "W2").await;
    expect(owner.is_none(), format!("connected in W2 to {owner:?}"))?;
    is_stranger(rig, &cast.person).await
}
