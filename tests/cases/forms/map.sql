-- A map, in the form of OSM's without PostGIS: keys with versions, foreign keys of two columns, enums, big numbers.
CREATE TYPE nwr_enum AS ENUM ('Node', 'Way', 'Relation');
CREATE TABLE users (id bigserial PRIMARY KEY, email varchar NOT NULL UNIQUE, display_name varchar NOT NULL DEFAULT '', home_lat double precision,
  creation_time timestamp without time zone NOT NULL);
CREATE UNIQUE INDEX users_lower ON users (lower(email));
CREATE TABLE changesets (id bigserial PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, created_at timestamp NOT NULL,
  min_lat integer, max_lat integer, closed_at timestamp NOT NULL, num_changes integer NOT NULL DEFAULT 0);
CREATE TABLE nodes (node_id bigint NOT NULL, latitude integer NOT NULL, longitude integer NOT NULL, changeset_id bigint NOT NULL
  REFERENCES changesets (id), visible boolean NOT NULL, "timestamp" timestamp NOT NULL, tile bigint NOT NULL, version bigint NOT NULL,
  redaction_id integer, PRIMARY KEY (node_id, version));
CREATE TABLE node_tags (node_id bigint NOT NULL, version bigint NOT NULL, k varchar NOT NULL DEFAULT '', v varchar NOT NULL DEFAULT '',
  PRIMARY KEY (node_id, version, k), FOREIGN KEY (node_id, version) REFERENCES nodes (node_id, version));
CREATE TABLE ways (way_id bigint NOT NULL, changeset_id bigint NOT NULL REFERENCES changesets (id), version bigint NOT NULL,
  visible boolean NOT NULL DEFAULT true, PRIMARY KEY (way_id, version));
CREATE TABLE way_nodes (way_id bigint NOT NULL, node_id bigint NOT NULL, version bigint NOT NULL, sequence_id bigint NOT NULL,
  PRIMARY KEY (way_id, version, sequence_id), FOREIGN KEY (way_id, version) REFERENCES ways (way_id, version));
CREATE TABLE relations (relation_id bigint NOT NULL, changeset_id bigint NOT NULL REFERENCES changesets, version bigint NOT NULL,
  PRIMARY KEY (relation_id, version));
CREATE TABLE relation_members (relation_id bigint NOT NULL, member_type nwr_enum NOT NULL, member_id bigint NOT NULL, member_role varchar NOT NULL,
  version bigint NOT NULL DEFAULT 0, sequence_id integer NOT NULL DEFAULT 0, PRIMARY KEY (relation_id, version, sequence_id),
  FOREIGN KEY (relation_id, version) REFERENCES relations (relation_id, version));
CREATE TABLE friends (id bigserial PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, friend_user_id bigint NOT NULL REFERENCES users,
  CHECK (user_id <> friend_user_id));
CREATE TABLE user_blocks (id serial PRIMARY KEY, user_id bigint NOT NULL REFERENCES users, creator_id bigint NOT NULL REFERENCES users,
  reason text NOT NULL, ends_at timestamp NOT NULL, needs_view boolean NOT NULL DEFAULT false);
