-- A chat server, in the form of Synapse: text keys without foreign keys, wide unique indexes, partial ones, bigint times,
-- bytea, jsonb, tables with a lock row, streams.
CREATE TABLE users (name text, password_hash text, creation_ts bigint, admin smallint DEFAULT 0 NOT NULL, is_guest smallint DEFAULT 0 NOT NULL,
  shadow_banned boolean, CONSTRAINT users_name_key UNIQUE (name));
CREATE TABLE rooms (room_id text NOT NULL PRIMARY KEY, is_public boolean, creator text, has_auth_chain_index boolean);
CREATE TABLE events (topological_ordering bigint NOT NULL, event_id text NOT NULL, type text NOT NULL, room_id text NOT NULL,
  content text, unrecognized_keys text, processed boolean NOT NULL, outlier boolean NOT NULL, depth bigint DEFAULT 0 NOT NULL,
  origin_server_ts bigint, stream_ordering bigint, state_key text, CONSTRAINT events_event_id_key UNIQUE (event_id));
CREATE UNIQUE INDEX events_stream_ordering ON events (stream_ordering);
CREATE INDEX events_order_room ON events (room_id, topological_ordering, stream_ordering);
CREATE TABLE event_json (event_id text NOT NULL UNIQUE, room_id text NOT NULL, internal_metadata text NOT NULL, json text NOT NULL,
  format_version integer);
CREATE TABLE event_edges (event_id text NOT NULL, prev_event_id text NOT NULL, room_id text, is_state bool DEFAULT false NOT NULL,
  CONSTRAINT event_edges_event_id_fkey FOREIGN KEY (event_id) REFERENCES events (event_id), UNIQUE (event_id, prev_event_id));
CREATE TABLE access_tokens (id bigint PRIMARY KEY, user_id text NOT NULL, device_id text, token text NOT NULL UNIQUE, refresh_token_id bigint);
CREATE TABLE refresh_tokens (id bigint PRIMARY KEY, user_id text NOT NULL, token text NOT NULL UNIQUE, next_token_id bigint
  REFERENCES refresh_tokens (id) ON DELETE CASCADE);
ALTER TABLE access_tokens ADD FOREIGN KEY (refresh_token_id) REFERENCES refresh_tokens (id) ON DELETE CASCADE;
CREATE TABLE stream_positions (stream_name text NOT NULL, instance_name text NOT NULL, stream_id bigint NOT NULL);
CREATE UNIQUE INDEX stream_positions_idx ON stream_positions (stream_name, instance_name);
CREATE TABLE applied_schema_deltas (version integer NOT NULL, file text NOT NULL, UNIQUE (version, file));
CREATE TABLE schema_version (lock character(1) DEFAULT 'X'::bpchar NOT NULL, version integer NOT NULL, upgraded boolean NOT NULL,
  CONSTRAINT schema_version_lock_check CHECK ((lock = 'X'::bpchar)), UNIQUE (lock));
CREATE TABLE room_memberships (event_id text NOT NULL UNIQUE, user_id text NOT NULL, sender text NOT NULL, room_id text NOT NULL,
  membership text NOT NULL, forgotten integer DEFAULT 0, display_name text, event_stream_ordering bigint REFERENCES events (stream_ordering));
CREATE TABLE local_media (media_id text UNIQUE, media_type text, media_length integer, quarantined_by text, safe boolean DEFAULT false NOT NULL);
CREATE TABLE threepids (user_id text NOT NULL, medium text NOT NULL, address text NOT NULL, validated_at bigint NOT NULL,
  CONSTRAINT medium_address UNIQUE (medium, address));
CREATE TABLE destinations (destination text NOT NULL PRIMARY KEY, retry_last_ts bigint, failure_ts bigint);
CREATE TABLE device_lists (user_id text NOT NULL, device_id text NOT NULL, content jsonb NOT NULL, hash bytea NOT NULL);
CREATE UNIQUE INDEX device_lists_once ON device_lists (user_id, device_id) WHERE device_id <> '';
CREATE UNIQUE INDEX lower_name ON users (lower(name));
