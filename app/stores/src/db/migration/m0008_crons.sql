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
CREATE INDEX crons_by_user ON crons (user_id, created_at DESC);
CREATE INDEX crons_by_thread ON crons (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX crons_by_next_run ON crons (next_run_date) WHERE next_run_date IS NOT NULL;
CREATE INDEX crons_taken ON crons (taken_at) WHERE taken_at IS NOT NULL;
