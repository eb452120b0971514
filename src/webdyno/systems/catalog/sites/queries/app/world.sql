CREATE TABLE world (id integer PRIMARY KEY, randomnumber integer NOT NULL);
INSERT INTO world SELECT n, 1 + n * 7919 % 10000 FROM generate_series(1, 10000) AS n;
VACUUM ANALYZE world;
