CREATE TABLE item (
    id serial PRIMARY KEY,
    name varchar(100) NOT NULL,
    price integer NOT NULL,
    version integer NOT NULL DEFAULT 1
);
INSERT INTO item (name, price) SELECT 'Item ' || n, n * 37 % 1000 FROM generate_series(1, 1000) AS n;
VACUUM ANALYZE item;
