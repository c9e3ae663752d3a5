-- A shop that rents films, in the form of Pagila: domains, enums, arrays, tsvector, partitions, triggers, views,
-- a foreign key that leads in a circle, owners that are not there.
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TYPE public.rating AS ENUM ('G', 'PG', 'PG-13', 'R');
CREATE DOMAIN public.release_year AS integer CONSTRAINT year_check CHECK (((VALUE >= 1901) AND (VALUE <= 2155)));
ALTER DOMAIN public.release_year OWNER TO shopkeeper;
CREATE FUNCTION public.touched() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN NEW.last_update = CURRENT_TIMESTAMP; RETURN NEW; END; $$;
CREATE SEQUENCE public.customer_id_seq START WITH 1 INCREMENT BY 1 NO MINVALUE NO MAXVALUE CACHE 1;
CREATE TABLE public.country (country_id serial PRIMARY KEY, country text NOT NULL, last_update timestamptz DEFAULT now() NOT NULL);
CREATE TABLE public.city (city_id serial PRIMARY KEY, city text NOT NULL, country_id integer NOT NULL REFERENCES public.country
  ON UPDATE CASCADE ON DELETE RESTRICT);
CREATE TABLE public.address (address_id serial PRIMARY KEY, address text NOT NULL, address2 text, district text NOT NULL,
  city_id integer NOT NULL REFERENCES public.city, postal_code text, phone text NOT NULL);
CREATE TABLE public.store (store_id serial PRIMARY KEY, manager_staff_id integer NOT NULL, address_id integer NOT NULL REFERENCES public.address);
CREATE TABLE public.staff (staff_id serial PRIMARY KEY, first_name text NOT NULL, address_id integer NOT NULL REFERENCES public.address,
  email text, store_id integer REFERENCES public.store, active boolean DEFAULT true NOT NULL, username text NOT NULL, picture bytea);
CREATE UNIQUE INDEX one_store_a_manager ON public.store (manager_staff_id);
CREATE TABLE public.customer (customer_id integer DEFAULT nextval('public.customer_id_seq'::regclass) PRIMARY KEY,
  store_id integer NOT NULL REFERENCES public.store, first_name text NOT NULL, email text, address_id integer NOT NULL
  REFERENCES public.address, activebool boolean DEFAULT true NOT NULL, create_date date DEFAULT CURRENT_DATE NOT NULL, active integer);
CREATE TABLE public.language (language_id serial PRIMARY KEY, name character(20) NOT NULL);
CREATE TABLE public.film (film_id serial PRIMARY KEY, title text NOT NULL, description text, release_year public.release_year,
  language_id integer NOT NULL REFERENCES public.language, original_language_id integer REFERENCES public.language,
  rental_duration smallint DEFAULT 3 NOT NULL, rental_rate numeric(4,2) DEFAULT 4.99 NOT NULL, length smallint,
  rating public.rating DEFAULT 'G'::public.rating, special_features text[], fulltext tsvector NOT NULL);
CREATE INDEX film_fulltext_idx ON public.film USING gist (fulltext);
CREATE TABLE public.actor (actor_id serial PRIMARY KEY, first_name text NOT NULL, last_name text NOT NULL);
CREATE TABLE public.film_actor (actor_id integer NOT NULL REFERENCES public.actor, film_id integer NOT NULL REFERENCES public.film,
  last_update timestamptz DEFAULT now() NOT NULL, PRIMARY KEY (actor_id, film_id));
CREATE TABLE public.inventory (inventory_id serial PRIMARY KEY, film_id integer NOT NULL REFERENCES public.film,
  store_id integer NOT NULL REFERENCES public.store);
CREATE TABLE public.rental (rental_id serial PRIMARY KEY, rental_date timestamptz NOT NULL, inventory_id integer NOT NULL
  REFERENCES public.inventory, customer_id integer NOT NULL REFERENCES public.customer, return_date timestamptz,
  staff_id integer NOT NULL REFERENCES public.staff);
CREATE UNIQUE INDEX one_rental_at_a_time ON public.rental (rental_date, inventory_id, customer_id);
CREATE TABLE public.payment (payment_id serial NOT NULL, customer_id integer NOT NULL, staff_id integer NOT NULL,
  rental_id integer NOT NULL, amount numeric(5,2) NOT NULL, payment_date timestamptz NOT NULL,
  PRIMARY KEY (payment_date, payment_id)) PARTITION BY RANGE (payment_date);
CREATE TABLE public.payment_p01 PARTITION OF public.payment FOR VALUES FROM ('2022-01-01 00:00:00+00') TO ('2022-02-01 00:00:00+00');
CREATE TABLE public.payment_p02 PARTITION OF public.payment FOR VALUES FROM ('2022-02-01 00:00:00+00') TO ('2022-03-01 00:00:00+00');
ALTER TABLE ONLY public.payment_p01 ADD CONSTRAINT p01_customer FOREIGN KEY (customer_id) REFERENCES public.customer(customer_id);
ALTER TABLE ONLY public.payment_p02 ADD CONSTRAINT p02_customer FOREIGN KEY (customer_id) REFERENCES public.customer(customer_id);
ALTER TABLE ONLY public.payment_p01 ADD CONSTRAINT p01_rental FOREIGN KEY (rental_id) REFERENCES public.rental(rental_id);
CREATE VIEW public.customer_list AS SELECT cu.customer_id AS id, cu.first_name AS name FROM public.customer cu;
ALTER VIEW public.customer_list OWNER TO shopkeeper;
CREATE TRIGGER touched BEFORE UPDATE ON public.film FOR EACH ROW EXECUTE FUNCTION public.touched();
GRANT SELECT ON public.film TO reporting;
