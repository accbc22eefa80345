CREATE TABLE accounts (
    account_id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    password_hash TEXT,
    provider TEXT,
    subject TEXT,
    needs_setup BOOLEAN NOT NULL,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_login_at BIGINT
);
CREATE INDEX accounts_by_creation ON accounts (created_at, account_id);
CREATE UNIQUE INDEX accounts_by_email ON accounts (email);
CREATE UNIQUE INDEX accounts_by_identity ON accounts (provider, subject) WHERE provider IS NOT NULL;
CREATE INDEX accounts_by_role ON accounts (role, account_id);
CREATE TABLE api_keys (
    key_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT,
    hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
, is_admin BOOLEAN NOT NULL DEFAULT FALSE);
CREATE INDEX api_keys_by_user ON api_keys (user_id);
CREATE TABLE assistant_versions (
    assistant_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    graph_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config_json TEXT NOT NULL,
    context_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (assistant_id, version)
);
CREATE TABLE assistants (
    assistant_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    version BIGINT NOT NULL,
    graph_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config_json TEXT NOT NULL,
    context_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX assistants_by_user ON assistants (user_id, created_at, assistant_id);
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    recorded_at BIGINT NOT NULL,
    actor TEXT,
    address TEXT,
    agent TEXT,
    action TEXT NOT NULL,
    object TEXT,
    outcome TEXT NOT NULL
);
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_actor ON audit (actor, seq);
CREATE INDEX audit_by_object ON audit (object, seq);
CREATE INDEX audit_by_time ON audit (recorded_at);
CREATE TABLE channel_codes (
    code_hash TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX channel_codes_by_end ON channel_codes (expires_at);
CREATE INDEX channel_codes_by_user ON channel_codes (user_id, provider);
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
CREATE UNIQUE INDEX channel_connections_active ON channel_connections (provider, account, workspace) WHERE active;
CREATE INDEX channel_connections_by_user ON channel_connections (user_id, created_at);
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
CREATE TABLE channel_credentials (
    provider TEXT NOT NULL PRIMARY KEY,
    sealed TEXT,
    version BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE TABLE channel_cursors (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    position TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account)
);
CREATE TABLE channel_inbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
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
CREATE INDEX channel_inbox_by_state ON channel_inbox (state, seq);
CREATE INDEX channel_inbox_ended ON channel_inbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX channel_inbox_waiting ON channel_inbox (provider, account, urgency, conversation, seq) WHERE state = 'waiting';
CREATE TABLE channel_lanes (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    chat TEXT NOT NULL,
    closed_until BIGINT NOT NULL,
    PRIMARY KEY (provider, account, chat)
);
CREATE INDEX channel_lanes_by_end ON channel_lanes (closed_until);
CREATE TABLE channel_leases (
    provider TEXT NOT NULL,
    account TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    node TEXT NOT NULL,
    since BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (provider, account)
);
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
CREATE TABLE channel_outbox (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
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
CREATE INDEX channel_outbox_by_state ON channel_outbox (state, seq);
CREATE INDEX channel_outbox_ended ON channel_outbox (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX channel_outbox_pending ON channel_outbox (provider, account, chat, seq) WHERE state = 'pending';
CREATE TABLE checkpoint_messages (
    thread_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    message_json TEXT NOT NULL,
    PRIMARY KEY (thread_id, place)
);
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    parent_id TEXT,
    run_id TEXT,
    source TEXT NOT NULL,
    step BIGINT NOT NULL,
    layout_json TEXT NOT NULL,
    channels_json TEXT NOT NULL,
    next_json TEXT NOT NULL,
    machine_json TEXT,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_id)
);
CREATE INDEX checkpoints_by_run ON checkpoints (run_id);
CREATE TABLE crons (
    cron_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    thread_id TEXT REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    schedule TEXT NOT NULL,
    timezone TEXT,
    end_time BIGINT,
    on_run_completed TEXT,
    enabled BOOLEAN NOT NULL,
    metadata_json TEXT NOT NULL,
    payload_json TEXT NOT NULL,
    next_run_date BIGINT,
    fires_for BIGINT,
    taken_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX crons_by_next_run ON crons (next_run_date) WHERE next_run_date IS NOT NULL;
CREATE INDEX crons_by_thread ON crons (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX crons_by_user ON crons (user_id, created_at DESC);
CREATE INDEX crons_taken ON crons (taken_at) WHERE taken_at IS NOT NULL;
CREATE TABLE deleted_threads (
    thread_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT
);
CREATE TABLE duties (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until BIGINT NOT NULL
);
CREATE TABLE feedback (
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    feedback_id TEXT NOT NULL,
    message_id TEXT,
    rating BIGINT NOT NULL,
    comment TEXT,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, run_id, user_id)
);
CREATE TABLE flow_contents (
    user_id TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    content_json TEXT NOT NULL,
    unused_since BIGINT,
    PRIMARY KEY (user_id, content_hash)
);
CREATE INDEX flow_contents_unused ON flow_contents (unused_since) WHERE unused_since IS NOT NULL;
CREATE TABLE flow_owners (
    user_id TEXT NOT NULL PRIMARY KEY
);
CREATE TABLE flow_pins (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    content_hash TEXT NOT NULL,
    PRIMARY KEY (thread_id, content_hash)
);
CREATE INDEX flow_pins_by_content ON flow_pins (content_hash);
CREATE TABLE flow_versions (
    user_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    summary_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, slug, version)
);
CREATE INDEX flow_versions_by_content ON flow_versions (user_id, content_hash);
CREATE TABLE flows (
    user_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    version BIGINT NOT NULL,
    content_hash TEXT NOT NULL,
    summary_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, slug)
);
CREATE TABLE login_addresses (
    subject TEXT NOT NULL,
    address TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (subject, address)
);
CREATE INDEX login_addresses_by_time ON login_addresses (used_at);
CREATE TABLE login_attempts (
    attempt_id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    address TEXT NOT NULL,
    failed BOOLEAN NOT NULL,
    attempted_at BIGINT NOT NULL
);
CREATE INDEX login_attempts_by_address ON login_attempts (address, attempted_at);
CREATE INDEX login_attempts_by_subject ON login_attempts (subject, attempted_at);
CREATE INDEX login_attempts_by_time ON login_attempts (attempted_at);
CREATE TABLE memories (
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    document_json TEXT NOT NULL,
    revision BIGINT NOT NULL,
    edits BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, agent)
);
CREATE TABLE memory_news (
    thread_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    agent TEXT NOT NULL,
    watermark TEXT,
    number BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    due_at BIGINT,
    taken_until BIGINT,
    PRIMARY KEY (thread_id, user_id, agent)
);
CREATE INDEX memory_news_by_due ON memory_news (due_at);
CREATE TABLE model_usage (
    usage_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT REFERENCES runs (run_id) ON DELETE CASCADE,
    user_id TEXT,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    total_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX model_usage_by_run ON model_usage (run_id);
CREATE INDEX model_usage_by_user ON model_usage (user_id, created_at);
CREATE TABLE nodes (
    node_id TEXT NOT NULL PRIMARY KEY,
    since BIGINT NOT NULL,
    lease_until BIGINT NOT NULL
, address TEXT, renewed_at BIGINT);
CREATE TABLE registrations (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    registered_at BIGINT NOT NULL
);
CREATE INDEX registrations_by_address ON registrations (address, registered_at);
CREATE INDEX registrations_by_time ON registrations (registered_at);
CREATE TABLE request_keys (
    user_id TEXT NOT NULL,
    route TEXT NOT NULL,
    name TEXT NOT NULL,
    part BIGINT NOT NULL,
    digest TEXT NOT NULL,
    made_json TEXT NOT NULL,
    expires_at BIGINT NOT NULL, run_id TEXT, values_json TEXT,
    PRIMARY KEY (user_id, route, name, part)
);
CREATE INDEX request_keys_by_end ON request_keys (expires_at);
CREATE INDEX request_keys_by_run ON request_keys (run_id) WHERE run_id IS NOT NULL;
CREATE TABLE run_event_counters (
    thread_id TEXT NOT NULL PRIMARY KEY,
    last_seq BIGINT NOT NULL
);
CREATE TABLE run_events (
    thread_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    user_id TEXT,
    event_type TEXT NOT NULL,
    category TEXT NOT NULL,
    content TEXT NOT NULL,
    event_metadata TEXT NOT NULL,
    created_at BIGINT NOT NULL, "long_content" blob,
    PRIMARY KEY (thread_id, seq)
);
CREATE INDEX run_events_by_category ON run_events (thread_id, category, seq);
CREATE INDEX run_events_by_run ON run_events (thread_id, run_id, seq);
CREATE TABLE run_text_parts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    column_name TEXT NOT NULL,
    part INTEGER NOT NULL,
    part_text TEXT NOT NULL,
    PRIMARY KEY (run_id, column_name, part)
);
CREATE TRIGGER run_texts_of_kwargs AFTER UPDATE OF kwargs_json ON runs
WHEN OLD.kwargs_json = '{ }' AND NEW.kwargs_json <> '{ }'
BEGIN
    DELETE FROM run_text_parts WHERE run_id = OLD.run_id AND column_name = 'kwargs_json';
END;
CREATE TRIGGER run_texts_of_recipe AFTER UPDATE OF recipe_json ON runs
WHEN OLD.recipe_json = '{ }' AND NEW.recipe_json IS NOT '{ }'
BEGIN
    DELETE FROM run_text_parts WHERE run_id = OLD.run_id AND column_name = 'recipe_json';
END;
CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    thread_id TEXT NOT NULL,
    assistant_id TEXT NOT NULL,
    user_id TEXT,
    status TEXT NOT NULL,
    attempt BIGINT NOT NULL,
    model_name TEXT,
    multitask_strategy TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    kwargs_json TEXT NOT NULL,
    cancel_action TEXT,
    error TEXT,
    stop_reason TEXT,
    completion_json TEXT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, last_batch BIGINT NOT NULL DEFAULT 0, recipe_json TEXT, webhook TEXT, error_name TEXT, owner TEXT, losses BIGINT NOT NULL DEFAULT 0, place BIGINT NOT NULL DEFAULT 0, due_at BIGINT, started_at BIGINT);
CREATE INDEX runs_by_thread ON runs (thread_id, created_at DESC, run_id DESC);
CREATE INDEX runs_by_user ON runs (user_id, created_at DESC, run_id DESC);
CREATE UNIQUE INDEX runs_one_owned_per_thread ON runs (thread_id) WHERE status IN ('starting', 'running');
CREATE INDEX runs_over ON runs (updated_at) WHERE status <> 'pending' AND status <> 'starting' AND status <> 'running';
CREATE INDEX runs_owned_by_user ON runs (user_id) WHERE status IN ('starting', 'running');
CREATE INDEX runs_pending_by_user ON runs (user_id) WHERE status = 'pending';
CREATE INDEX runs_unfinished_by_thread ON runs (thread_id, created_at, run_id) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX runs_waiting ON runs (created_at, run_id) WHERE status = 'pending';
CREATE TABLE scheduled_task_runs (
    task_run_id TEXT NOT NULL PRIMARY KEY,
    task_id TEXT NOT NULL REFERENCES scheduled_tasks (task_id) ON DELETE CASCADE,
    user_id TEXT NOT NULL,
    thread_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    scheduled_for BIGINT NOT NULL,
    cause TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    started_at BIGINT,
    finished_at BIGINT,
    claimed_at BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE UNIQUE INDEX scheduled_task_runs_active ON scheduled_task_runs (task_id) WHERE status IN ('queued', 'running');
CREATE INDEX scheduled_task_runs_by_task ON scheduled_task_runs (task_id, created_at DESC);
CREATE TABLE scheduled_tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    context_mode TEXT NOT NULL,
    thread_id TEXT REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    prompt TEXT NOT NULL,
    run_at BIGINT,
    cron TEXT,
    timezone TEXT NOT NULL,
    status TEXT NOT NULL,
    next_run_at BIGINT,
    last_run_at BIGINT,
    last_run_id TEXT,
    last_thread_id TEXT,
    last_error TEXT,
    run_count BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX scheduled_tasks_by_next_run ON scheduled_tasks (next_run_at) WHERE next_run_at IS NOT NULL;
CREATE INDEX scheduled_tasks_by_thread ON scheduled_tasks (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX scheduled_tasks_by_user ON scheduled_tasks (user_id, created_at DESC);
CREATE TABLE "seaql_migrations" ( "version" varchar NOT NULL PRIMARY KEY, "applied_at" integer NOT NULL );
CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    persistent BOOLEAN NOT NULL,
    user_agent TEXT,
    address TEXT
);
CREATE INDEX sessions_by_end ON sessions (ends_at);
CREATE UNIQUE INDEX sessions_by_token ON sessions (token_hash);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
CREATE TABLE store_items (
    user_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    item_key TEXT NOT NULL,
    value_json TEXT NOT NULL,
    ttl_micros BIGINT,
    expires_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (user_id, namespace, item_key)
);
CREATE INDEX store_items_by_end ON store_items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE store_vectors (
    user_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    item_key TEXT NOT NULL,
    part BIGINT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (user_id, namespace, item_key, part),
    FOREIGN KEY (user_id, namespace, item_key) REFERENCES store_items (user_id, namespace, item_key) ON DELETE CASCADE
);
CREATE TABLE stream_log (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    last_seq BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    ended TEXT,
    frames BLOB NOT NULL,
    PRIMARY KEY (run_id, last_seq)
);
CREATE TABLE thread_facts (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    value TEXT NOT NULL,
    user_id TEXT,
    PRIMARY KEY (thread_id, path, value)
);
CREATE INDEX thread_facts_by_value ON thread_facts (path, value, user_id, thread_id);
CREATE TABLE thread_log_runs (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    seq_count BIGINT,
    ended TEXT,
    PRIMARY KEY (thread_id, run_id)
);
CREATE TABLE threads_meta (
    thread_id TEXT NOT NULL PRIMARY KEY,
    assistant_id TEXT,
    user_id TEXT,
    display_name TEXT,
    status TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    pinned BOOLEAN NOT NULL,
    temporary BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
, run_assistant_id TEXT, state_updated_at BIGINT NOT NULL DEFAULT 0, ttl_micros BIGINT, keep_latest BOOLEAN NOT NULL DEFAULT FALSE, forgot_at BIGINT);
CREATE INDEX threads_meta_by_assistant ON threads_meta (user_id, run_assistant_id, thread_id);
CREATE INDEX threads_meta_by_change ON threads_meta (state_updated_at, thread_id);
CREATE INDEX threads_meta_by_creation ON threads_meta (user_id, created_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_end ON threads_meta ((updated_at + ttl_micros))
    WHERE ttl_micros IS NOT NULL AND (forgot_at IS NULL OR forgot_at <= updated_at);
CREATE INDEX threads_meta_by_graph ON threads_meta (user_id, assistant_id, thread_id);
CREATE INDEX threads_meta_by_id ON threads_meta (user_id, thread_id);
CREATE INDEX threads_meta_by_state_update ON threads_meta (user_id, state_updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_status ON threads_meta (user_id, status DESC, updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_title ON threads_meta (user_id, display_name);
CREATE INDEX threads_meta_by_update ON threads_meta (user_id, updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_user ON threads_meta (user_id, pinned DESC, updated_at DESC, thread_id DESC);
CREATE TABLE tool_calls (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    call_key TEXT NOT NULL,
    result_json TEXT,
    PRIMARY KEY (run_id, call_key)
);
CREATE TABLE used_states (
    state_hash TEXT NOT NULL PRIMARY KEY,
    ends_at BIGINT NOT NULL
);
CREATE INDEX used_states_by_end ON used_states (ends_at);
CREATE TABLE webhook_outbox (
    run_id TEXT NOT NULL PRIMARY KEY,
    run_json TEXT NOT NULL,
    call_json TEXT NOT NULL,
    signature_key TEXT,
    ended_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    due_at BIGINT,
    last_error TEXT
, died_at BIGINT);
CREATE INDEX webhook_outbox_dead ON webhook_outbox (died_at) WHERE died_at IS NOT NULL;
CREATE INDEX webhook_outbox_due ON webhook_outbox (due_at) WHERE due_at IS NOT NULL;
