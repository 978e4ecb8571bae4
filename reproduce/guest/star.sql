CREATE TABLE fact (k1 int4, k2 int4, k3 int4, k4 int4, k5 int4, k6 int4, g int4, measure int8, filler text)
INSERT INTO fact SELECT (hashint8extended(i, 1) & 2147483647) % 100000, (hashint8extended(i, 2) & 2147483647) % 200000, (hashint8extended(i, 3) & 2147483647) % 300000, (hashint8extended(i, 4) & 2147483647) % 400000, (hashint8extended(i, 5) & 2147483647) % 500000, (hashint8extended(i, 6) & 2147483647) % 600000, (hashint8extended(i, 7) & 1023)::int4, i, repeat('x', 63) FROM generate_series(1::int8, 125000) i
CREATE TABLE dim4 (id int4, sel int4, payload int8, filler text)
INSERT INTO dim4 SELECT i, (hashint8extended(i, 8) & 2147483647) % 100, i, repeat('y', 211) FROM generate_series(0::int8, 399999) i WHERE (hashint8extended(i, 8) & 2147483647) % 100 < 10
CREATE TABLE dim1 AS SELECT * FROM dim4 WHERE id < 100000
VACUUM (FREEZE, ANALYZE)
SELECT relname, relpages, reltuples FROM pg_class WHERE relname ~ '^(fact|dim)' ORDER BY 1
CHECKPOINT
