CREATE INDEX runs_unfinished_by_user ON runs (user_id, status) WHERE status IN ('pending', 'starting', 'running');
