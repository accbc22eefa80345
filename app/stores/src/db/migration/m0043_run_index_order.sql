DROP INDEX runs_by_thread;
CREATE INDEX runs_by_thread ON runs (thread_id, created_at DESC, run_id DESC);
