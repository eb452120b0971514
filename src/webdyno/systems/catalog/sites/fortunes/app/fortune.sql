CREATE TABLE fortune (id integer PRIMARY KEY, message varchar(2048) NOT NULL);
-- What a page can get wrong is in them: HTML, quotes, order by code points, letters beyond ASCII.
INSERT INTO fortune VALUES
    (1, 'Measure twice, deploy once.'),
    (2, 'a lowercase letter comes after all capitals'),
    (3, 'Zero requests per second: somebody pulled the plug.'),
    (4, 'Tom & Jerry said: "quotes" aren''t <b>bold</b>.'),
    (5, 'A benchmark answers the question that it asks.'),
    (6, 'The fastest request is the one that nobody sends.'),
    (7, '<script>alert("This should not be displayed in a browser alert box.");</script>'),
    (8, 'Add a cache, and then you have two problems.'),
    (9, 'Élan has its accent beyond ASCII.'),
    (10, 'Every percentile hides a person who waits.'),
    (11, '測る前に信じるな。'),
    (12, 'Addendum: latency is what users feel.');
VACUUM ANALYZE fortune;
