CREATE TABLE thread_log_runs (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    run_id TEXT NOT NULL,
    first_seq BIGINT NOT NULL,
    seq_count BIGINT,
    ended TEXT,
    PRIMARY KEY (thread_id, run_id)
);
