-- A warehouse: dimensions around facts, in a schema of its own, partitioned by month; a bridge; sums of each day.
CREATE SCHEMA dwh;
SET search_path TO dwh, public;
CREATE TABLE dim_date (date_key integer PRIMARY KEY CHECK (date_key BETWEEN 20200101 AND 20301231), day date NOT NULL UNIQUE,
  is_weekend boolean NOT NULL, quarter smallint NOT NULL CHECK (quarter BETWEEN 1 AND 4));
CREATE TABLE dim_store (store_key serial PRIMARY KEY, store_code varchar(8) NOT NULL UNIQUE, region text NOT NULL);
CREATE TABLE dim_product (product_key bigserial PRIMARY KEY, sku char(12) NOT NULL UNIQUE, category text NOT NULL,
  price numeric(10, 2) NOT NULL CHECK (price > 0), valid_from date NOT NULL, valid_to date, CHECK (valid_to IS NULL OR valid_to > valid_from));
CREATE TABLE dim_customer (customer_key bigserial PRIMARY KEY, email text, segment text CHECK (segment IN ('A', 'B', 'C')));
CREATE TABLE fact_sales (date_key integer NOT NULL REFERENCES dim_date, store_key integer NOT NULL REFERENCES dim_store,
  product_key bigint NOT NULL REFERENCES dim_product, customer_key bigint REFERENCES dim_customer, sold_at timestamp NOT NULL,
  quantity integer NOT NULL CHECK (quantity > 0), amount numeric(12, 2) NOT NULL CHECK (amount >= 0)) PARTITION BY RANGE (sold_at);
CREATE TABLE fact_sales_h1 PARTITION OF fact_sales FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE fact_sales_h2 PARTITION OF fact_sales FOR VALUES FROM ('2024-07-01') TO ('2025-01-01');
CREATE INDEX ON fact_sales USING brin (sold_at);
CREATE TABLE daily (store_key integer REFERENCES dim_store, date_key integer REFERENCES dim_date, amount numeric NOT NULL,
  PRIMARY KEY (store_key, date_key));
CREATE MATERIALIZED VIEW by_region AS SELECT region, sum(amount) FROM fact_sales JOIN dim_store USING (store_key) GROUP BY 1;
