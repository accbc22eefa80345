DROP INDEX runs_one_active_per_thread;
UPDATE runs SET status = 'starting' WHERE status = 'pending';
CREATE UNIQUE INDEX runs_one_owned_per_thread ON runs (thread_id) WHERE status IN ('starting', 'running');
CREATE INDEX runs_unfinished_by_thread ON runs (thread_id, created_at, run_id) WHERE status IN ('pending', 'starting', 'running');
CREATE INDEX runs_waiting ON runs (created_at, run_id) WHERE status = 'pending';
ALTER TABLE runs ADD COLUMN recipe_json TEXT;
ALTER TABLE runs ADD COLUMN webhook TEXT;

CREATE TABLE webhook_outbox (
    run_id TEXT NOT NULL PRIMARY KEY,
    run_json TEXT NOT NULL,
    call_json TEXT NOT NULL,
    signature_key TEXT,
    ended_at BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    due_at BIGINT,
    last_error TEXT
);
CREATE INDEX webhook_outbox_due ON webhook_outbox (due_at) WHERE due_at IS NOT NULL;
