-- Not a query, or not one query
DELETE FROM people;
--> 1:1 only SELECT is accepted
DROP TABLE people;
--> 1:1 only SELECT is accepted
UPDATE people SET income = 0;
--> 1:1 only SELECT is accepted
INSERT INTO people SELECT * FROM people;
--> 1:1 only SELECT is accepted
CREATE TABLE stolen AS SELECT * FROM people;
--> 1:1 only SELECT is accepted
COPY people TO '/tmp/x';
--> 1:1 only SELECT is accepted
ATTACH 'x.db';
--> 1:1 only SELECT is accepted
PRAGMA database_list;
--> 1:1 only SELECT is accepted
SET search_path = x;
--> 1:1 only SELECT is accepted
EXPLAIN SELECT COUNT(*) FROM people;
--> 1:1 only SELECT is accepted
CALL pg_sleep(1);
--> 1:1 only SELECT is accepted
VALUES (1);
--> 1:1 only SELECT is accepted
TABLE people;
--> 1:1 only SELECT is accepted
SELEC COUNT(*) FROM people;
--> 1:1 only SELECT is accepted
SELECT COUNT(* FROM people;
--> 1:16 this is not valid SQL here

-- Single rows
SELECT * FROM people;
--> 1:1 nothing is aggregated here, and single rows are not shown
SELECT income FROM people WHERE age = 30;
--> 1:1 nothing is aggregated here, and single rows are not shown
SELECT DISTINCT income FROM people;
--> 1:8 DISTINCT is not accepted here
SELECT sex, area FROM people GROUP BY sex, area;
--> 1:1 nothing is aggregated here, and single rows are not shown
SELECT income, COUNT(*) FROM people GROUP BY sex;
--> 1:8 income is neither aggregated nor in GROUP BY
SELECT COUNT(*), people.* FROM people;
--> 1:18 single rows are not shown; ask for an aggregate
SELECT array_agg(income) FROM people;
--> 1:8 of aggregates only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted
SELECT string_agg(diagnosis, ',') FROM people;
--> 1:8 of aggregates only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted
SELECT SUM(x) FROM (SELECT income AS x FROM people LIMIT 1) AS q;
--> 1:52 LIMIT on single rows is not accepted
SELECT SUM(x) FROM (SELECT income AS x FROM people ORDER BY age OFFSET 3) AS q;
--> 1:65 OFFSET on single rows is not accepted
SELECT SUM(x) FROM (SELECT DISTINCT income AS x FROM people) AS q;
--> 1:28 DISTINCT is not accepted here

-- Windows
SELECT SUM(income) OVER (PARTITION BY sex) FROM people;
--> 1:8 window functions are not accepted: they answer about single rows
SELECT COUNT(*), rank() OVER (ORDER BY SUM(income)) FROM people GROUP BY sex;
--> 1:18 window functions are not accepted: they answer about single rows
SELECT COUNT(*) FROM people WINDOW w AS (PARTITION BY sex);
--> 1:36 WINDOW is not accepted here
SELECT COUNT(*) FROM people QUALIFY row_number() OVER () = 1;
--> 1:29 QUALIFY is not accepted here

-- Subqueries and joins that are not inner joins to public tables
SELECT COUNT(*) FROM people WHERE income = (SELECT MAX(income) FROM people);
--> 1:44 a subquery inside an expression is not accepted
SELECT COUNT(*) FROM people WHERE area IN (SELECT area FROM areas);
--> 1:35 IN takes a list of values, not a subquery
SELECT COUNT(*) FROM people p WHERE EXISTS (SELECT 1 FROM areas a WHERE a.area = p.area);
--> 1:37 a subquery inside an expression is not accepted
SELECT COUNT(*) FROM people WHERE age > ALL (SELECT 1);
--> 1:41 a subquery inside an expression is not accepted
SELECT (SELECT MAX(income) FROM people), COUNT(*) FROM people;
--> 1:8 a subquery inside an expression is not accepted
SELECT COUNT(*) FROM people a JOIN people b ON a.area = b.area;
--> 1:36 the protected table cannot be joined to itself
SELECT COUNT(*) FROM people a, people b;
--> 1:32 the protected table cannot be joined to itself
SELECT COUNT(*) FROM people JOIN secrets ON TRUE;
--> 1:34 there is one protected table, and secrets is another name
SELECT COUNT(*) FROM people LEFT JOIN areas ON people.area = areas.area;
--> 1:29 only inner joins with a condition are accepted
SELECT COUNT(*) FROM people FULL JOIN areas ON people.area = areas.area;
--> 1:29 only inner joins with a condition are accepted
SELECT COUNT(*) FROM people NATURAL JOIN areas;
--> 1:29 only inner joins with a condition are accepted
SELECT COUNT(*) FROM people, LATERAL (SELECT 1) AS x;
--> 1:30 only tables and derived tables are accepted here
SELECT COUNT(*) FROM areas;
--> 1:22 this asks nothing about the protected table
SELECT SUM(n) FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q;
--> 1:8 aggregated values cannot be aggregated again
SELECT COUNT(*) FROM people JOIN (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q ON q.sex = people.sex;
--> 1:29 an aggregated table cannot be joined
WITH RECURSIVE r AS (SELECT COUNT(*) FROM people UNION ALL SELECT 1 FROM r) SELECT * FROM r;
--> 1:1 RECURSIVE is not accepted here
SELECT COUNT(*) FROM people UNION SELECT SUM(income) FROM people;
--> 1:1 UNION without ALL is not accepted
SELECT COUNT(*) FROM people EXCEPT SELECT 1;
--> 1:1 only SELECT and UNION ALL are accepted
SELECT COUNT(*) FROM people INTERSECT SELECT 1;
--> 1:1 only SELECT and UNION ALL are accepted
SELECT COUNT(*) FROM people UNION ALL SELECT income FROM people;
--> 1:39 nothing is aggregated here, and single rows are not shown

-- Files, functions of the system, chance, the clock
SELECT COUNT(*) FROM read_csv('/etc/passwd');
--> 1:22 functions that make tables are not accepted
SELECT COUNT(*) FROM '/etc/passwd';
--> 1:22 files are not read; a table's name has no single quotation marks
SELECT COUNT(*) FROM generate_series(1, 1000000000);
--> 1:22 functions that make tables are not accepted
SELECT COUNT(*) FROM (VALUES (1), (2)) AS v (x);
--> 1:22 only tables and derived tables are accepted here
SELECT COUNT(*) FROM people WHERE random() < 0.5;
--> 1:35 random() is not accepted: the same question must have the same answer
SELECT COUNT(*) FROM people WHERE gen_random_uuid()::text < 'a';
--> 1:35 the function uuid() is not accepted
SELECT pg_read_file('/etc/passwd'), COUNT(*) FROM people;
--> 1:8 the function pg_read_file() is not accepted
SELECT COUNT(*), pg_sleep(10) FROM people;
--> 1:18 the function pg_sleep() is not accepted
SELECT COUNT(*), getenv('HOME') FROM people;
--> 1:18 the function getenv() is not accepted
SELECT COUNT(*) FROM people WHERE born < current_date;
--> 1:42 the clock is not accepted: write the date out
SELECT COUNT(*) FROM people WHERE seen < now();
--> 1:42 the clock is not accepted: write the date out
SELECT COUNT(*) FROM people WHERE born + INTERVAL '1 day' > '2020-01-01';
--> 1:42 intervals are not accepted: write the date out
SELECT COUNT(*) FROM people TABLESAMPLE SYSTEM (10);
--> 1:29 TABLESAMPLE is not accepted here
SELECT COUNT(*) INTO stolen FROM people;
--> 1:17 INTO is not accepted here
SELECT COUNT(*) FROM people FOR UPDATE;
--> 1:29 FOR UPDATE or SHARE is not accepted here

-- Aggregates outside the list
SELECT stddev(income) FROM people;
--> 1:8 of aggregates only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted
SELECT var_pop(income) FROM people;
--> 1:8 of aggregates only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted
SELECT approx_quantile(income, 0.5) FROM people;
--> 1:8 only COUNT, SUM, AVG, MIN, MAX, MEDIAN and quantiles are accepted
SELECT percentile_cont(1.01) WITHIN GROUP (ORDER BY income) FROM people;
--> 1:24 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT percentile_cont(-0.5) WITHIN GROUP (ORDER BY income) FROM people;
--> 1:24 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT percentile_cont(0.1234567) WITHIN GROUP (ORDER BY income) FROM people;
--> 1:24 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT percentile_cont('0.5') WITHIN GROUP (ORDER BY income) FROM people;
--> 1:24 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT percentile_cont(ARRAY[0.2, 0.8]) WITHIN GROUP (ORDER BY income) FROM people;
--> 1:24 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT quantile_cont(income, weight) FROM people;
--> 1:30 the share of a quantile is a constant from 0 to 1 with at most six digits after the point
SELECT quantile_cont(income) FROM people;
--> 1:8 a quantile takes a value and its share; write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or quantile_cont(x, p) or quantile_disc(x, p)
SELECT percentile_cont(income) FROM people;
--> 1:8 a quantile needs its share; write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or quantile_cont(x, p) or quantile_disc(x, p)
SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY income DESC) FROM people;
--> 1:52 percentile_disc is read in ascending order only; leave DESC out
SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY income, age) FROM people;
--> 1:8 a quantile is taken of one value; write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or quantile_cont(x, p) or quantile_disc(x, p)
SELECT percentile_cont(0.2) WITHIN GROUP (ORDER BY diagnosis) FROM people;
--> 1:52 quantile needs numbers, and this is text
SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY member) FROM people;
--> 1:52 quantile of a boolean is not defined
SELECT quantile_disc(DISTINCT income, 0.5) FROM people;
--> 1:8 a quantile takes a value and its share; write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or quantile_cont(x, p) or quantile_disc(x, p)
SELECT COUNT(*) FROM people WHERE quantile_cont(income, 0.5) > 3;
--> 1:35 an aggregate does not stand here
SELECT mode() WITHIN GROUP (ORDER BY diagnosis) FROM people;
--> 1:8 of ordered-set aggregates only percentile_cont and percentile_disc are accepted
SELECT SUM(DISTINCT income) FROM people;
--> 1:8 DISTINCT is accepted in COUNT of one public column only
SELECT COUNT(DISTINCT income) FROM people;
--> 1:8 COUNT(DISTINCT ...) of a private column is not accepted
SELECT COUNT(DISTINCT diagnosis) FROM people;
--> 1:8 COUNT(DISTINCT ...) of a private column is not accepted
SELECT SUM(MAX(income)) FROM people;
--> 1:12 an aggregate does not stand here
SELECT COUNT(*) FROM people WHERE SUM(income) > 3;
--> 1:35 an aggregate does not stand here
SELECT COUNT(*) FROM people GROUP BY SUM(income);
--> 1:38 an aggregate does not stand in GROUP BY
SELECT SUM(sex) FROM people;
--> 1:12 sum needs numbers, and this is text
SELECT SUM(income ORDER BY age) FROM people;
--> 1:12 Order is not accepted

-- Names and types
SELECT SUM(salary) FROM people;
--> 1:12 there is no column salary
SELECT SUM(incom) FROM people;
--> 1:12 there is no column incom; did you mean "income"?
SELECT COUNT(*) FROM people WHERE id = 3;
--> 1:35 id is an identifier, and those are never used in a query
SELECT id, COUNT(*) FROM people GROUP BY id;
--> 1:42 id is an identifier, and those are never used in a query
SELECT COUNT(*) FROM people WHERE sex = "f";
--> 1:41 there is no column f; text stands in single quotation marks
SELECT COUNT(*) FROM people p JOIN areas a ON p.area = a.area WHERE area = 3;
--> 1:69 there are several columns area here; say whose
SELECT COUNT(*) FROM people WHERE sex = 3;
--> 1:35 integer and text do not go together; cast one of them
SELECT COUNT(*) FROM people WHERE age = 'old';
--> 1:35 this text is not an integer
SELECT COUNT(*) FROM people WHERE age;
--> 1:35 a condition is needed here, and this is an integer
SELECT COUNT(*) FROM people WHERE born > '2020-02-30';
--> 1:35 this text is not a date
SELECT COUNT(*) FROM people WHERE note LIKE note;
--> 1:35 LIKE needs a constant pattern
SELECT COUNT(*) FROM people WHERE note LIKE 'a\';
--> 1:35 this LIKE pattern ends with its escape character
SELECT COUNT(*) FROM people WHERE note ~ 'a.*';
--> 1:35 the function regexp_like() is not accepted
SELECT COUNT(*) FROM people WHERE note ILIKE 'a%';
--> 1:35 ILike is not accepted
SELECT COUNT(*) FROM people WHERE note COLLATE "C" > 'a';
--> 1:35 the function collate() is not accepted
SELECT COUNT(*) FROM people WHERE age = $1;
--> 1:41 this constant was left out of the statement; put its value back
SELECT COUNT(*) FROM people WHERE age = ?;
--> 1:41 this constant was left out of the statement; put its value back
SELECT COUNT(*) FROM people WHERE (age, sex) = (3, 'f');
--> 1:35 a row of values is not accepted here
SELECT note::bytea, COUNT(*) FROM people GROUP BY 1;
--> 1:8 a cast to bytea is not accepted
SELECT COUNT(*) FROM people
WHERE age > 3
  AND md5(note) = 'x';
--> 3:7 the function md5() is not accepted

-- Order, limits and what is set beside each other
SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 3 OFFSET 1;
--> 1:55 OFFSET is not accepted
SELECT sex, COUNT(*) FROM people GROUP BY sex LIMIT 1 + 1;
--> 1:53 LIMIT takes a constant number of rows
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 2 FETCH FIRST 1 ROWS WITH TIES;
--> 1:72 WITH TIES is not accepted here
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex LIMIT 1) AS q;
--> 1:67 LIMIT is accepted at the end of the whole statement only
(SELECT COUNT(*) FROM people LIMIT 1) UNION ALL SELECT SUM(age) FROM people;
--> 1:30 LIMIT is accepted at the end of the whole statement only
SELECT COUNT(*) FROM people ORDER BY 2;
--> 1:38 a constant in ORDER BY is the position of a column of SELECT
SELECT sex, COUNT(*) FROM people GROUP BY sex ORDER BY 'x';
--> 1:56 a constant in ORDER BY is the position of a column of SELECT
SELECT sex, COUNT(*) FROM people GROUP BY 3;
--> 1:43 a constant in GROUP BY is the position of a column of SELECT
SELECT sex, COUNT(*) FROM people GROUP BY 'sex';
--> 1:43 a constant in GROUP BY is the position of a column of SELECT
SELECT SUM(age) FROM (SELECT age FROM people ORDER BY md5(note)) AS q;
--> 1:55 the function md5() is not accepted
SELECT COUNT(*) FROM people UNION ALL SELECT SUM(age) FROM people ORDER BY md5('x');
--> 1:76 ORDER BY after UNION ALL names a column that is shown
SELECT COUNT(*) FROM people UNION ALL SELECT SUM(age), 3 FROM people;
--> 1:39 this part of the UNION ALL has another number of columns
SELECT COUNT(*) FROM people UNION ALL SELECT MAX(sex) FROM people;
--> 1:1 in a column of this UNION ALL, integer and text do not go together; cast one of them
SELECT COUNT(*) FROM people HAVING COUNT(*);
--> 1:36 a condition is needed here, and this is an integer
SELECT n FROM (SELECT COUNT(*) AS n FROM people) AS q WHERE n;
--> 1:61 a condition is needed here, and this is an integer
SELECT z.n FROM (SELECT COUNT(*) AS n FROM people) AS q;
--> 1:8 there is no column z.n; did you mean q.n?
SELECT n FROM (SELECT COUNT(*) AS n, SUM(age) AS n FROM people) AS q;
--> 1:8 there are several columns n here; say whose
WITH a AS (SELECT * FROM people), a AS (SELECT * FROM people WHERE member) SELECT COUNT(*) FROM a;
--> 1:35 WITH names a twice
SELECT COUNT(*) FROM people p JOIN areas p ON TRUE;
--> 1:36 two tables are called p here; rename one
SELECT COUNT(*) FROM people JOIN areas ON people.area = areas.area JOIN offers USING (area);
--> 1:87 there are several columns area here; say whose
SELECT SUM(c) FROM people AS p (a, b, c);
--> 1:20 name the columns in a SELECT: a table's own order is not known here
SELECT SUM(q.b) FROM (SELECT * FROM people) AS q (a, b);
--> 1:22 name the columns in a SELECT: a table's own order is not known here
SELECT FROM people HAVING COUNT(*) > 1;
--> 1:1 this SELECT shows nothing
SELECT people.* EXCEPT (age), COUNT(*) FROM people;
--> 1:25 EXCEPT is not accepted here
SELECT COUNT(* EXCEPT (age)) FROM people;
--> 1:24 EXCEPT is not accepted here

-- Arguments that are missing, too many, or of no size
SELECT COUNT() FROM people;
--> 1:8 count needs an argument
SELECT SUM(NULL) FROM people;
--> 1:12 sum needs numbers, and this is text
SELECT floor() FROM people GROUP BY 1 HAVING COUNT(*) > 1;
--> 1:8 an argument is missing here
SELECT substr(note), COUNT(*) FROM people GROUP BY 1;
--> 1:8 substr needs a position to start from
SELECT percentile_cont(0.5) WITHIN GROUP () FROM people;
--> 1:8 a quantile is taken of one value; write percentile_cont(p) or percentile_disc(p) WITHIN GROUP (ORDER BY x), or quantile_cont(x, p) or quantile_disc(x, p)
SELECT age::numeric(x), COUNT(*) FROM people GROUP BY 1;
--> 1:8 numeric takes at most 38 digits, 12 of them after the point
SELECT age::numeric(5, 1, 1), COUNT(*) FROM people GROUP BY 1;
--> 1:8 numeric takes at most 38 digits, 12 of them after the point
SELECT ("Height" * 2)::text, COUNT(*) FROM people GROUP BY 1;
--> 1:8 how many digits this decimal has is not fixed; round it before the cast
SELECT substr(note, 99999999999), COUNT(*) FROM people GROUP BY 1;
--> 1:8 substr takes positions below 2^31
SELECT COUNT(*) FROM people WHERE age < '99999999999999999999';
--> 1:35 this text is not an integer
SELECT COUNT(*) FROM people WHERE age < '٣';
--> 1:35 this text is not an integer
SELECT COUNT(*) FROM people WHERE "Height" < '1e999999999';
--> 1:35 this text is not a decimal
SELECT COUNT(*) FROM people WHERE "Height" < 1e40;
--> 1:35 a decimal has at most 26 digits before the point and 12 after it
SELECT COUNT(*) FROM people WHERE "Height" < 0.0000000000000001;
--> 1:35 a decimal has at most 26 digits before the point and 12 after it
SELECT COUNT(*) FROM people WHERE score < 1e400;
--> 1:43 this is not a number to compute with
SELECT COUNT(*) FROM people WHERE born < '2020-W10-1';
--> 1:35 this text is not a date
SELECT COUNT(*) FROM people WHERE seen < '2020-06-01 12:00:00+02';
--> 1:35 this text is not a timestamp
SELECT COUNT(*) FROM people WHERE seen < '2020-06-01 12:00:00.1234567';
--> 1:35 this text is not a timestamp
SELECT MAX(age, 3) FROM people;
--> 1:17 another argument is not accepted here
SELECT SUM(people.income) FROM people AS p;
--> 1:12 there is no column people.income; did you mean p.income?
WITH a AS (SELECT age FROM people UNION ALL SELECT weight FROM people) SELECT COUNT(*) FROM a;
--> 1:12 nothing is aggregated here, and single rows are not shown
