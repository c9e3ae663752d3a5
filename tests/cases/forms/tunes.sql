-- A music shop, in the form of Chinook: quoted or plain ids that count from the file, foreign keys added at the end,
-- rows that the file brings itself.
CREATE TABLE artist (artist_id INT NOT NULL GENERATED ALWAYS AS IDENTITY, name VARCHAR(120), CONSTRAINT artist_pkey PRIMARY KEY (artist_id));
CREATE TABLE album (album_id INT NOT NULL, title VARCHAR(160) NOT NULL, artist_id INT NOT NULL, CONSTRAINT album_pkey PRIMARY KEY (album_id));
CREATE TABLE employee (employee_id INT NOT NULL, last_name VARCHAR(20) NOT NULL, reports_to INT, hire_date TIMESTAMP,
  CONSTRAINT employee_pkey PRIMARY KEY (employee_id));
CREATE TABLE customer (customer_id INT NOT NULL, first_name VARCHAR(40) NOT NULL, email VARCHAR(60) NOT NULL, support_rep_id INT,
  CONSTRAINT customer_pkey PRIMARY KEY (customer_id));
CREATE TABLE genre (genre_id INT NOT NULL, name VARCHAR(120), CONSTRAINT genre_pkey PRIMARY KEY (genre_id));
CREATE TABLE media_type (media_type_id INT NOT NULL, name VARCHAR(120), CONSTRAINT media_type_pkey PRIMARY KEY (media_type_id));
CREATE TABLE track (track_id INT NOT NULL, name VARCHAR(200) NOT NULL, album_id INT, media_type_id INT NOT NULL, genre_id INT,
  milliseconds INT NOT NULL, bytes INT, unit_price NUMERIC(10,2) NOT NULL, CONSTRAINT track_pkey PRIMARY KEY (track_id));
CREATE TABLE invoice (invoice_id INT NOT NULL, customer_id INT NOT NULL, invoice_date TIMESTAMP NOT NULL, total NUMERIC(10,2) NOT NULL,
  CONSTRAINT invoice_pkey PRIMARY KEY (invoice_id));
CREATE TABLE invoice_line (invoice_line_id INT NOT NULL, invoice_id INT NOT NULL, track_id INT NOT NULL, quantity INT NOT NULL,
  CONSTRAINT invoice_line_pkey PRIMARY KEY (invoice_line_id));
CREATE TABLE playlist (playlist_id INT NOT NULL, name VARCHAR(120), CONSTRAINT playlist_pkey PRIMARY KEY (playlist_id));
CREATE TABLE playlist_track (playlist_id INT NOT NULL, track_id INT NOT NULL, CONSTRAINT playlist_track_pkey PRIMARY KEY (playlist_id, track_id));
ALTER TABLE album ADD CONSTRAINT album_artist_id_fkey FOREIGN KEY (artist_id) REFERENCES artist (artist_id) ON DELETE NO ACTION;
CREATE INDEX album_artist_id_idx ON album (artist_id);
ALTER TABLE employee ADD FOREIGN KEY (reports_to) REFERENCES employee (employee_id);
ALTER TABLE customer ADD FOREIGN KEY (support_rep_id) REFERENCES employee (employee_id);
ALTER TABLE track ADD FOREIGN KEY (album_id) REFERENCES album (album_id);
ALTER TABLE track ADD FOREIGN KEY (media_type_id) REFERENCES media_type (media_type_id);
ALTER TABLE track ADD FOREIGN KEY (genre_id) REFERENCES genre (genre_id);
ALTER TABLE invoice ADD FOREIGN KEY (customer_id) REFERENCES customer (customer_id);
ALTER TABLE invoice_line ADD FOREIGN KEY (invoice_id) REFERENCES invoice (invoice_id);
ALTER TABLE invoice_line ADD FOREIGN KEY (track_id) REFERENCES track (track_id);
ALTER TABLE playlist_track ADD FOREIGN KEY (playlist_id) REFERENCES playlist (playlist_id);
ALTER TABLE playlist_track ADD FOREIGN KEY (track_id) REFERENCES track (track_id);
INSERT INTO genre (genre_id, name) VALUES (1, 'Rock'), (7, 'It''s Latin'), (40, 'Opera; live');
INSERT INTO media_type (media_type_id, name) VALUES (3, 'MPEG'), (5, E'AAC\n');
