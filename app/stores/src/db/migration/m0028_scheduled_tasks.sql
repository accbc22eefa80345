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
CREATE INDEX scheduled_tasks_by_user ON scheduled_tasks (user_id, created_at DESC);
CREATE INDEX scheduled_tasks_by_thread ON scheduled_tasks (thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX scheduled_tasks_by_next_run ON scheduled_tasks (next_run_at) WHERE next_run_at IS NOT NULL;
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
CREATE INDEX scheduled_task_runs_by_task ON scheduled_task_runs (task_id, created_at DESC);
CREATE UNIQUE INDEX scheduled_task_runs_active ON scheduled_task_runs (task_id) WHERE status IN ('queued', 'running');
