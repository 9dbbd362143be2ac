-- HttpArena's table of 100 000 items, without an index on the price; arena_async_db.py has the same rows.
CREATE TABLE items (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, category TEXT NOT NULL, price INTEGER NOT NULL,
    quantity INTEGER NOT NULL, active BOOLEAN NOT NULL, tags JSONB NOT NULL, rating_score INTEGER NOT NULL,
    rating_count INTEGER NOT NULL
);
INSERT INTO items
SELECT g, 'Item ' || g,
    (ARRAY['electronics', 'tools', 'books', 'clothing', 'office', 'garden', 'toys', 'sports'])[g % 8 + 1],
    g * 79 % 500 + 1, g * 31 % 1000 + 1, g % 2 = 0,
    jsonb_build_array('tag ' || g % 7, 'shelf ' || g % 90), g * 7 % 50 + 1, g * 13 % 500 + 1
FROM generate_series(1, 100000) g;
VACUUM ANALYZE items;
