ALTER TABLE webhook_outbox ADD COLUMN died_at BIGINT;
CREATE INDEX webhook_outbox_dead ON webhook_outbox (died_at) WHERE died_at IS NOT NULL;
CREATE TABLE duties (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    held_until BIGINT NOT NULL
);
CREATE INDEX runs_over ON runs (updated_at) WHERE status NOT IN ('pending', 'starting', 'running');
ALTER TABLE nodes ADD COLUMN address TEXT;
ALTER TABLE nodes ADD COLUMN renewed_at BIGINT;
