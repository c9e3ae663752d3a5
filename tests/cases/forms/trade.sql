-- Orders of a trader, in the form of Northwind: keys that users wrote (char(5), varchar(20)), composite keys, checks,
-- a table that refers to itself, reals, old money.
DROP TABLE IF EXISTS customers;
CREATE TABLE categories (category_id smallint NOT NULL PRIMARY KEY, category_name character varying(15) NOT NULL, picture bytea);
CREATE TABLE customers (customer_id character(5) NOT NULL PRIMARY KEY, company_name character varying(40) NOT NULL,
  country character varying(15), phone character varying(24));
CREATE TABLE customer_demographics (customer_type_id character(5) NOT NULL PRIMARY KEY, customer_desc text);
CREATE TABLE customer_customer_demo (customer_id character(5) NOT NULL REFERENCES customers, customer_type_id character(5) NOT NULL
  REFERENCES customer_demographics, PRIMARY KEY (customer_id, customer_type_id));
CREATE TABLE employees (employee_id smallint NOT NULL PRIMARY KEY, last_name character varying(20) NOT NULL, birth_date date,
  hire_date date, reports_to smallint REFERENCES employees, photo_path character varying(255), CHECK (birth_date < hire_date));
CREATE TABLE region (region_id smallint NOT NULL PRIMARY KEY, region_description character varying(60) NOT NULL);
CREATE TABLE territories (territory_id character varying(20) NOT NULL PRIMARY KEY, territory_description character varying(60) NOT NULL,
  region_id smallint NOT NULL REFERENCES region);
CREATE TABLE employee_territories (employee_id smallint NOT NULL REFERENCES employees, territory_id character varying(20) NOT NULL
  REFERENCES territories, PRIMARY KEY (employee_id, territory_id));
CREATE TABLE shippers (shipper_id smallint NOT NULL PRIMARY KEY, company_name character varying(40) NOT NULL);
CREATE TABLE suppliers (supplier_id smallint NOT NULL PRIMARY KEY, company_name character varying(40) NOT NULL, homepage text);
CREATE TABLE products (product_id smallint NOT NULL PRIMARY KEY, product_name character varying(40) NOT NULL,
  supplier_id smallint REFERENCES suppliers, category_id smallint REFERENCES categories, unit_price real CHECK (unit_price >= 0),
  units_in_stock smallint CHECK (units_in_stock >= 0), discontinued integer NOT NULL CHECK (discontinued IN (0, 1)));
CREATE TABLE orders (order_id smallint NOT NULL PRIMARY KEY, customer_id character(5) REFERENCES customers, employee_id smallint
  REFERENCES employees, order_date date, ship_via smallint REFERENCES shippers (shipper_id), freight money);
CREATE TABLE order_details (order_id smallint NOT NULL REFERENCES orders, product_id smallint NOT NULL REFERENCES products,
  unit_price real NOT NULL, quantity smallint NOT NULL CHECK (quantity > 0), discount real NOT NULL CHECK (discount BETWEEN 0 AND 1),
  PRIMARY KEY (order_id, product_id));
