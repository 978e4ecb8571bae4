CREATE TABLE fact (k1 int4, k2 int4, k3 int4, k4 int4, k5 int4, k6 int4, g int4, measure int8, filler text)
INSERT INTO fact SELECT (hashint8extended(i, 1) & 2147483647) % 100000, (hashint8extended(i, 2) & 2147483647) % 200000, (hashint8extended(i, 3) & 2147483647) % 300000, (hashint8extended(i, 4) & 2147483647) % 400000, (hashint8extended(i, 5) & 2147483647) % 500000, (hashint8extended(i, 6) & 2147483647) % 600000, (hashint8extended(i, 7) & 1023)::int4, i, repeat('x', 63) FROM generate_series(1::int8, 2000000) i
CREATE TABLE dim (id int4, sel int4, payload int8, filler text)
INSERT INTO dim SELECT i, (hashint8extended(i, 8) & 2147483647) % 100, i, repeat('y', 211) FROM generate_series(0::int8, 599999) i
VACUUM (FREEZE, ANALYZE) fact
CREATE TABLE dim1 AS SELECT * FROM dim WHERE id < 100000
CREATE TABLE dim2 AS SELECT * FROM dim WHERE id < 200000
CREATE TABLE dim3 AS SELECT * FROM dim WHERE id < 300000
CREATE TABLE dim4 AS SELECT * FROM dim WHERE id < 400000
CREATE TABLE dim5 AS SELECT * FROM dim WHERE id < 500000
ALTER TABLE dim RENAME TO dim6
VACUUM (FREEZE, ANALYZE)
SELECT relname, relpages, reltuples FROM pg_class WHERE relname ~ '^(fact|dim)' ORDER BY 1
CHECKPOINT
