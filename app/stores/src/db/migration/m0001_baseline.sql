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
);
CREATE INDEX threads_meta_by_user ON threads_meta (user_id, pinned DESC, updated_at DESC, thread_id DESC);

CREATE TABLE deleted_threads (
    thread_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT
);

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
);
CREATE UNIQUE INDEX runs_one_active_per_thread ON runs (thread_id) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX runs_by_thread ON runs (thread_id, created_at DESC, run_id DESC);

CREATE TABLE run_events (
    thread_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    user_id TEXT,
    event_type TEXT NOT NULL,
    category TEXT NOT NULL,
    content TEXT NOT NULL,
    event_metadata TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
CREATE INDEX run_events_by_category ON run_events (thread_id, category, seq);
CREATE INDEX run_events_by_run ON run_events (thread_id, run_id, seq);

CREATE TABLE run_event_counters (
    thread_id TEXT NOT NULL PRIMARY KEY,
    last_seq BIGINT NOT NULL
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

CREATE TABLE checkpoint_messages (
    thread_id TEXT NOT NULL,
    place BIGINT NOT NULL,
    message_json TEXT NOT NULL,
    PRIMARY KEY (thread_id, place)
);
