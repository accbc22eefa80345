DROP INDEX runs_over;
CREATE INDEX runs_over ON runs (updated_at) WHERE status <> 'pending' AND status <> 'starting' AND status <> 'running';
DROP INDEX runs_unfinished_by_user;
CREATE INDEX runs_owned_by_user ON runs (user_id) WHERE status IN ('starting', 'running');
CREATE INDEX runs_pending_by_user ON runs (user_id) WHERE status = 'pending';
