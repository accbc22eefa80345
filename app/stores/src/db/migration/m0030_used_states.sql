CREATE TABLE used_states (
    state_hash TEXT NOT NULL PRIMARY KEY,
    ends_at BIGINT NOT NULL
);
CREATE INDEX used_states_by_end ON used_states (ends_at);
