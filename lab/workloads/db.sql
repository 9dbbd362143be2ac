-- Tables of the workloads db-one, db-rows, db-queries, db-updates and fortunes. Every value follows from the
-- row's number, as lab/workloads/db_*.py computes it again; but for `changing`, which db-updates writes.

CREATE TABLE world (id integer PRIMARY KEY, randomnumber integer NOT NULL);
INSERT INTO world SELECT id, (id::bigint * 7919 + 13) % 10000 + 1 FROM generate_series(1, 10000) AS id;

CREATE TABLE changing (id integer PRIMARY KEY, randomnumber integer NOT NULL) WITH (fillfactor = 50);
INSERT INTO changing SELECT * FROM world;

CREATE TABLE items (
    id integer PRIMARY KEY,
    name text NOT NULL,
    category text NOT NULL,
    price integer NOT NULL,
    quantity integer NOT NULL,
    active boolean NOT NULL,
    tags jsonb NOT NULL,
    rating_score integer NOT NULL,
    rating_count integer NOT NULL
);
INSERT INTO items SELECT
    id,
    'Product number ' || id,
    (ARRAY['electronics', 'garden', 'books', 'toys'])[id % 4 + 1],
    id % 1000,
    id % 37,
    id % 3 <> 0,
    jsonb_build_array('tag ' || id % 7, 'shelf ' || id % 90),
    id % 50,
    id % 400
FROM generate_series(1, 100000) AS id;
CREATE INDEX items_price ON items (price);

CREATE TABLE fortune (id integer PRIMARY KEY, message text NOT NULL);
INSERT INTO fortune VALUES
    (1, 'fortune: No such file or directory'),
    (2, 'A computer scientist is someone who fixes things that are not broken.'),
    (3, 'After enough decimal places, nobody cares.'),
    (4, 'A bad random number generator: 1, 1, 1, 1, 1, 4.33e+67, 1, 1, 1'),
    (5, 'A computer program does what you tell it to do, not what you want.'),
    (6, 'Emacs is a nice operating system, but another editor is preferred.'),
    (7, 'Any program that runs right is obsolete.'),
    (8, 'A list is only as strong as its weakest link.'),
    (9, 'Feature: A bug with seniority.'),
    (10, 'Computers make very fast, very accurate mistakes.'),
    (11, '<script>alert("This should not be displayed in a browser alert box.");</script>'),
    (12, 'フレームワークのベンチマーク');

VACUUM ANALYZE;
