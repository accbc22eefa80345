CREATE TABLE channel_leases (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    node TEXT NOT NULL,
    since BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account)
);
CREATE TABLE channel_cursors (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    position TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account)
);
CREATE TABLE channel_inbox (
    seq {SEQ} PRIMARY KEY{INCREMENT},
    inbox_id TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    workspace TEXT NOT NULL,
    chat TEXT NOT NULL,
    message TEXT NOT NULL,
    conversation TEXT NOT NULL,
    urgency TEXT NOT NULL,
    state TEXT NOT NULL,
    note TEXT,
    claims BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    failed_since BIGINT,
    not_before BIGINT,
    received_at BIGINT NOT NULL,
    ended_at BIGINT,
    progress_json TEXT NOT NULL,
    event_json TEXT NOT NULL
);
CREATE INDEX channel_inbox_waiting ON channel_inbox (provider, account, urgency, conversation, seq) WHERE state = 'waiting';
CREATE INDEX channel_inbox_by_state ON channel_inbox (state, seq);
CREATE INDEX channel_inbox_ended ON channel_inbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE channel_outbox (
    seq {SEQ} PRIMARY KEY{INCREMENT},
    outbox_id TEXT NOT NULL UNIQUE,
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    conversation TEXT NOT NULL,
    part BIGINT NOT NULL,
    state TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    error TEXT,
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    platform_ids_json TEXT NOT NULL,
    progress_json TEXT NOT NULL,
    body_json TEXT NOT NULL
);
CREATE INDEX channel_outbox_pending ON channel_outbox (provider, account, chat, seq) WHERE state = 'pending';
CREATE INDEX channel_outbox_by_state ON channel_outbox (state, seq);
CREATE INDEX channel_outbox_ended ON channel_outbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE TABLE channel_links (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    platform_id TEXT NOT NULL,
    conversation TEXT NOT NULL,
    recorded_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account, chat, platform_id)
);
CREATE INDEX channel_links_by_time ON channel_links (recorded_at);
CREATE TABLE channel_conversations (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    conversation_key TEXT NOT NULL,
    chat TEXT NOT NULL,
    topic TEXT,
    thread_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    options_json TEXT NOT NULL,
    question_json TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account, conversation_key)
);
CREATE INDEX channel_conversations_by_chat ON channel_conversations (provider, account, chat);
CREATE TABLE channel_connections (
    connection_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    workspace TEXT NOT NULL,
    account_name TEXT,
    workspace_name TEXT,
    active BOOLEAN NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX channel_connections_by_user ON channel_connections (user_id, created_at);
CREATE UNIQUE INDEX channel_connections_active ON channel_connections (provider, account, workspace) WHERE active;
CREATE TABLE channel_codes (
    code_hash TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX channel_codes_by_user ON channel_codes (user_id, provider);
CREATE INDEX channel_codes_by_end ON channel_codes (expires_at);
CREATE TABLE channel_credentials (
    provider TEXT NOT NULL PRIMARY KEY,
    sealed TEXT,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
