DROP INDEX runs_unfinished_by_thread;
CREATE INDEX runs_unfinished_by_thread ON runs (thread_id, created_at, run_id) WHERE status IN ('pending', 'starting', 'running');
