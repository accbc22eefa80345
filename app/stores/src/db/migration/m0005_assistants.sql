CREATE TABLE assistants (
    assistant_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT,
    version BIGINT NOT NULL,
    graph_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config_json TEXT NOT NULL,
    context_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX assistants_by_user ON assistants (user_id, created_at, assistant_id);

CREATE TABLE assistant_versions (
    assistant_id TEXT NOT NULL,
    version BIGINT NOT NULL,
    graph_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    config_json TEXT NOT NULL,
    context_json TEXT NOT NULL,
    metadata_json TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (assistant_id, version)
);
