-- Counting, adding, averaging
SELECT COUNT(*) FROM people;
--> count(*)
SELECT COUNT(*);
--> count(*)
SELECT SUM(income) FROM anything;
--> sum("income")
SELECT SUM(income) WHERE age > 30;
--> sum("income") where "age" > 30
SELECT SUM(income), AVG(income), MIN(income), MAX(income), COUNT(bonus), SUM(bonus), AVG(bonus) FROM people WHERE 1 = 0;
--> sum("income") where false
--> avg("income") where false
--> min("income") where false
--> max("income") where false
--> count("bonus") where false
--> sum("bonus") where false
--> avg("bonus") where false
SELECT SUM(income), AVG(income), MIN(income), MAX(income), COUNT(bonus), SUM(bonus), AVG(bonus) FROM people;
--> sum("income")
--> avg("income")
--> min("income")
--> max("income")
--> count("bonus")
--> sum("bonus")
--> avg("bonus")
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY bonus), percentile_cont(0.5) WITHIN GROUP (ORDER BY income DESC) FROM people;
--> median("bonus")
--> median("income")
SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY bonus), percentile_cont(0.9) WITHIN GROUP (ORDER BY income DESC) FROM people;
--> quantile_cont("bonus", 0.25)
--> quantile_cont("income", 0.1)
SELECT sex, percentile_cont(0) WITHIN GROUP (ORDER BY age), percentile_cont(1) WITHIN GROUP (ORDER BY score) FROM people GROUP BY sex;
--> quantile_cont("age", 0) by "sex"
--> quantile_cont("score", 1) by "sex"
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY income), percentile_disc(0.333333) WITHIN GROUP (ORDER BY "Height") FROM people;
--> quantile_disc("income", 0.5)
--> quantile_disc("Height", 0.333333)
SELECT member, percentile_disc(0.75) WITHIN GROUP (ORDER BY note), percentile_disc(0.1) WITHIN GROUP (ORDER BY born) FROM people GROUP BY member;
--> quantile_disc("note", 0.75) by "member"
--> quantile_disc("born", 0.1) by "member"
SELECT percentile_disc(0.2) WITHIN GROUP (ORDER BY seen) FILTER (WHERE age > 7), 2 * percentile_cont(1e-1) WITHIN GROUP (ORDER BY age + 1) AS q FROM people WHERE area < 3;
--> quantile_disc("seen", 0.2) where ("area" < 3) and ("age" > 7)
--> quantile_cont(("age" + 1), 0.1) where "area" < 3
SELECT percentile_disc(0.05) WITHIN GROUP (ORDER BY rate) FROM people JOIN areas USING (area) HAVING percentile_cont(0.3) WITHIN GROUP (ORDER BY rate) > 0;
--> quantile_disc(j1."rate", 0.05) join "areas" j1 where "area" = j1."area"
--> quantile_cont(j1."rate", 0.3) join "areas" j1 where "area" = j1."area"
SELECT SUM(1), SUM(2.5), AVG(1), COUNT(1), COUNT(NULL) FROM people;
--> sum(1)
--> sum(2.5)
--> avg(1)
--> count(*)
--> count(null)
SELECT COUNT(DISTINCT area), COUNT(DISTINCT sex), COUNT(DISTINCT age / 10) FROM people;
--> count(distinct "area")
--> count(distinct "sex")
--> count(distinct ("age" / 10))
SELECT MIN(note), MAX(note), MIN(born), MAX(seen) FROM people;
--> min("note")
--> max("note")
--> min("born")
--> max("seen")
SELECT p.sex, COUNT(*) AS "How many?" FROM public.people AS p GROUP BY p.sex;
--> count(*) by "sex"

-- Groups
SELECT sex, COUNT(*) FROM people GROUP BY sex;
--> count(*) by "sex"
SELECT age / 10 AS decade, COUNT(*) FROM people GROUP BY age / 10;
--> count(*) by ("age" / 10)
SELECT age / 10 AS decade, COUNT(*) FROM people GROUP BY decade;
--> count(*) by ("age" / 10)
SELECT age / 10, COUNT(*) FROM people GROUP BY 1;
--> count(*) by ("age" / 10)
SELECT age / 10 + 1, COUNT(*) FROM people GROUP BY age / 10;
--> count(*) by ("age" / 10)
SELECT sex, member, COUNT(*), SUM(income) FROM people GROUP BY ROLLUP (sex, member);
--> count(*) by "sex", "member"
--> sum("income") by "sex", "member"
--> count(*) by "sex"
--> sum("income") by "sex"
--> count(*)
--> sum("income")
SELECT sex, member, COUNT(*) FROM people GROUP BY CUBE (sex, member) HAVING COUNT(*) > 3;
--> count(*) by "sex", "member"
--> count(*) by "member"
--> count(*) by "sex"
--> count(*)
SELECT sex, area, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (area), ());
--> count(*) by "sex"
--> count(*) by "area"
--> count(*)
SELECT sex, area, member, COUNT(*) FROM people GROUP BY sex, ROLLUP (area, member);
--> count(*) by "sex", "area", "member"
--> count(*) by "sex", "area"
--> count(*) by "sex"
SELECT sex, area, member, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex, area), ROLLUP (member));
--> count(*) by "sex", "area"
--> count(*) by "member"
--> count(*)
SELECT CASE WHEN age > 18 THEN 'adult' WHEN age IS NULL THEN NULL ELSE 'child' END AS what, COUNT(*) FROM people GROUP BY what;
--> count(*) by case when ("age" > 18) then 'adult' when ("age" is null) then null else 'child' end
SELECT sex, SUM(income) FROM people GROUP BY sex HAVING AVG(age) > 20 AND COUNT(*) >= 5;
--> sum("income") by "sex"
--> avg("age") by "sex"
--> count(*) by "sex"
SELECT sex, COUNT(*) AS n FROM people GROUP BY sex ORDER BY SUM(income) DESC, n, sex LIMIT 10;
--> count(*) by "sex"
--> sum("income") by "sex"
SELECT SUM(income) FROM people GROUP BY sex, area;
--> sum("income") by "sex", "area"

-- Three-valued logic
SELECT COUNT(*) FROM people WHERE NOT (age > 30 AND sex = 'f');
--> count(*) where not (("age" > 30) and ("sex" = 'f'))
SELECT COUNT(*) FROM people WHERE NOT (age > 30 OR sex = 'f');
--> count(*) where not (("age" > 30) or ("sex" = 'f'))
SELECT COUNT(*) FROM people WHERE age NOT IN (18, 30, NULL);
--> count(*) where not ("age" in (18, 30, null))
SELECT COUNT(*) FROM people WHERE age IN (18, 30, NULL);
--> count(*) where "age" in (18, 30, null)
SELECT COUNT(*) FROM people WHERE age NOT IN (18, 30);
--> count(*) where not ("age" in (18, 30))
SELECT COUNT(*) FROM people WHERE age NOT BETWEEN 10 AND 40;
--> count(*) where not (("age" >= 10) and ("age" <= 40))
SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 40 OR age IS NULL;
--> count(*) where (("age" >= 10) and ("age" <= 40)) or ("age" is null)
SELECT COUNT(*) FROM people WHERE (age > 30) = (sex = 'f');
--> count(*) where ("age" > 30) = ("sex" = 'f')
SELECT COUNT(*) FROM people WHERE member;
--> count(*) where "member"
SELECT COUNT(*) FROM people WHERE NOT member;
--> count(*) where not "member"
SELECT COUNT(*) FROM people WHERE member IS NOT TRUE;
--> count(*) where not ("member" is true)
SELECT COUNT(*) FROM people WHERE member IS FALSE OR member = 't';
--> count(*) where ((not "member") is true) or ("member" = true)
SELECT COUNT(*) FROM people WHERE (age > 18) IS TRUE AND (age > 18) IS NOT NULL;
--> count(*) where (("age" > 18) is true) and (not (("age" > 18) is null))
SELECT COUNT(*) FROM people WHERE age IS DISTINCT FROM 18;
--> count(*) where not ("age" is not distinct from 18)
SELECT COUNT(*) FROM people WHERE age IS NOT DISTINCT FROM NULL;
--> count(*) where "age" is not distinct from null
SELECT COUNT(*) FROM people WHERE NULL;
--> count(*) where null
SELECT COUNT(*) FROM people WHERE age = NULL OR sex = 'm';
--> count(*) where ("age" = null) or ("sex" = 'm')
SELECT COUNT(*) FROM people WHERE CASE WHEN age > 18 THEN sex = 'f' END;
--> count(*) where case when ("age" > 18) then ("sex" = 'f') else null end
SELECT SUM(income) FILTER (WHERE sex = 'f'), SUM(income) FILTER (WHERE sex <> 'f'), COUNT(*) FILTER (WHERE sex IS NULL) FROM people;
--> sum("income") where "sex" = 'f'
--> sum("income") where "sex" <> 'f'
--> count(*) where "sex" is null
SELECT sex, COUNT(*) FILTER (WHERE age > 60), SUM(income) FILTER (WHERE age > 60) FROM people GROUP BY sex;
--> count(*) where "age" > 60 by "sex"
--> sum("income") where "age" > 60 by "sex"

-- Numbers: integer division, rounding, remainders, mixed types
SELECT 7 / 2, -7 / 2, 7 % 3, -7 % 3, round(2.5), round(-2.5), 7 / 2.0, COUNT(*) FROM people;
--> count(*)
SELECT round(score), COUNT(*) FROM people GROUP BY 1;
--> count(*) by round("score")
SELECT round("Height"), round("Height", 1), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by round("Height"), round("Height", 1)
SELECT round(age, -1), COUNT(*) FROM people GROUP BY 1;
--> count(*) by round(cast("age" as decimal), -1)
SELECT floor("Height"), ceil("Height"), ceiling("Height"), COUNT(*) FROM people GROUP BY 1, 2, 3;
--> count(*) by floor("Height"), ceil("Height")
SELECT floor(score), ceil(score), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by floor("score"), ceil("score")
SELECT floor(age), COUNT(*) FROM people GROUP BY floor(age) / 2, floor(age);
--> count(*) by (floor(cast("age" as double)) / 2.0e0), floor(cast("age" as double))
SELECT SUM(abs("Height")), SUM(abs(score)), SUM(sqrt(abs(age))), SUM(ln(abs(age) + 1)), SUM(exp(age / 100.0)), SUM(power(age, 2)), SUM(pow(2, age / 10)) FROM people;
--> sum(abs("Height"))
--> sum(abs("score"))
--> sum(sqrt(cast(abs("age") as double)))
--> sum(ln(cast((abs("age") + 1) as double)))
--> sum(exp((cast("age" as decimal) / 100.0)))
--> sum(power(cast("age" as double), 2.0e0))
--> sum(power(2.0e0, cast(("age" / 10) as double)))
SELECT SUM(mod(age, 7)), SUM(age % 7), SUM("Height" % 1), SUM(age ^ 2) FROM people;
--> sum(("age" % 7))
--> sum(("Height" % 1))
--> sum(power(cast("age" as double), 2.0e0))
SELECT SUM(age * age * age), SUM("Height" * "Height" * "Height"), SUM(score * score), SUM(age - "Height" + score) FROM people;
--> sum((("age" * "age") * "age"))
--> sum((("Height" * "Height") * "Height"))
--> sum(("score" * "score"))
--> sum((cast((cast("age" as decimal) - "Height") as double) + "score"))
SELECT COUNT(*) FROM people WHERE -2 ^ 2 = 4 AND 2 + 3 * 4 % 5 - 6 / 4 = 3 AND NOT 1 = 2;
--> count(*)
SELECT COUNT(*) FROM people WHERE age > 2.5 AND age < 30.5 AND age <> 7.5;
--> count(*) where (cast("age" as decimal) > 2.5) and (cast("age" as decimal) < 30.5) and (cast("age" as decimal) <> 7.5)
SELECT COUNT(*) FROM people WHERE "Height" > 0.5 AND "Height" <= 1;
--> count(*) where ("Height" > 0.5) and ("Height" <= 1)
SELECT COUNT(*) FROM people WHERE score >= 0.1 AND score < 1e3;
--> count(*) where ("score" >= 0.1e0) and ("score" < 1000.0e0)
SELECT COUNT(*) FROM people WHERE score = "Height" OR score + 1 > age / 3;
--> count(*) where ("score" = cast("Height" as double)) or (("score" + 1.0e0) > cast(("age" / 3) as double))
SELECT COUNT(*) FROM people WHERE 18 < age AND '5' < age AND age <= '65';
--> count(*) where (18 < "age") and (5 < "age") and ("age" <= 65)
SELECT COUNT(*) FROM people WHERE (age + 3) / 4 = 5 OR age - weight > 20;
--> count(*) where ((("age" + 3) / 4) = 5) or (("age" - "weight") > 20)
SELECT COUNT(*) FROM people WHERE age::double precision / 7 > 2.5;
--> count(*) where (cast("age" as double) / 7.0e0) > 2.5e0

-- Casts
SELECT CAST(score AS integer), "Height"::int, COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by cast("score" as integer), cast("Height" as integer)
SELECT "Height"::numeric(4, 1), COUNT(*) FROM people GROUP BY 1;
--> count(*) by cast("Height" as decimal(1))
SELECT age::text, "Height"::text, member::text, born::text, seen::text, COUNT(*) FROM people GROUP BY 1, 2, 3, 4, 5;
--> count(*) by cast("age" as text), cast("Height" as text), cast("member" as text), cast("born" as text), cast("seen" as text)
SELECT member::int, COUNT(*) FROM people GROUP BY 1;
--> count(*) by cast("member" as integer)
SELECT born::timestamp, seen::date, COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by cast("born" as timestamp), cast("seen" as date)
SELECT COUNT(*) FROM people WHERE CAST('18' AS integer) = age;
--> count(*) where 18 = "age"

-- Text
SELECT COUNT(*) FROM people WHERE note LIKE 'a%';
--> count(*) where "note" like 'a%'
SELECT COUNT(*) FROM people WHERE note LIKE 'a\_b' OR note LIKE 'a\\b';
--> count(*) where ("note" like 'a\_b') or ("note" like 'a\\b')
SELECT COUNT(*) FROM people WHERE note LIKE 'ab!%c' ESCAPE '!';
--> count(*) where "note" like 'ab!%c' escape '!'
SELECT COUNT(*) FROM people WHERE note NOT LIKE '%a%' AND note LIKE '_%';
--> count(*) where (not ("note" like '%a%')) and ("note" like '_%')
SELECT COUNT(*) FROM people WHERE note < 'a';
--> count(*) where "note" < 'a'
SELECT COUNT(*) FROM people WHERE note >= 'Z' AND note <> 'it''s';
--> count(*) where ("note" >= 'Z') and ("note" <> 'it''s')
SELECT lower(note), COUNT(*) FROM people GROUP BY 1;
--> count(*) by lower("note")
SELECT upper(note), length(note), substr(note, 2), substr(note, 1, 2), substr(note, -1, 3), substring(note from 2 for 1), COUNT(*) FROM people GROUP BY 1, 2, 3, 4, 5, 6;
--> count(*) by upper("note"), length("note"), substr("note", 2), substr("note", 1, 2), substr("note", -1, 3), substr("note", 2, 1)
SELECT least(sex, 'g'), greatest(note, 'b'), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by least("sex", 'g'), greatest("note", 'b')

-- Dates
SELECT COUNT(*) FROM people WHERE born >= '2020-06-01' AND born < DATE '2021-01-01';
--> count(*) where ("born" >= DATE '2020-06-01') and ("born" < DATE '2021-01-01')
SELECT COUNT(*) FROM people WHERE seen > '2020-06-01 12:00:00' AND seen <= TIMESTAMP '2020-11-01 00:00:00';
--> count(*) where ("seen" > TIMESTAMP '2020-06-01 12:00:00') and ("seen" <= TIMESTAMP '2020-11-01 00:00:00')
SELECT COUNT(*) FROM people WHERE seen > born AND born BETWEEN '2019-12-30' AND '2021-06-30';
--> count(*) where ("seen" > cast("born" as timestamp)) and ("born" >= DATE '2019-12-30') and ("born" <= DATE '2021-06-30')
SELECT extract(year from born), extract(month from seen), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by extract('year' from "born"), extract('month' from "seen")
SELECT extract(week from born), extract(isodow from born), extract(dow from born), extract(doy from born), extract(quarter from born), extract(day from born), COUNT(*) FROM people GROUP BY 1, 2, 3, 4, 5, 6;
--> count(*) by extract('week' from "born"), extract('isodow' from "born"), extract('dow' from "born"), extract('doy' from "born"), extract('quarter' from "born"), extract('day' from "born")
SELECT date_part('hour', seen), extract(minute from seen), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by extract('hour' from "seen"), extract('minute' from "seen")
SELECT date_trunc('month', seen), COUNT(*) FROM people GROUP BY 1;
--> count(*) by date_trunc('month', "seen")
SELECT date_trunc('week', seen), date_trunc('quarter', seen), date_trunc('hour', seen), date_trunc('year', seen), COUNT(*) FROM people GROUP BY 1, 2, 3, 4;
--> count(*) by date_trunc('week', "seen"), date_trunc('quarter', "seen"), date_trunc('hour', "seen"), date_trunc('year', "seen")

-- NULL in functions
SELECT COUNT(*) FROM people WHERE coalesce(age, weight, 0) = 0;
--> count(*) where coalesce("age", "weight", 0) = 0
SELECT COUNT(*) FROM people WHERE nullif(age, 18) IS NULL;
--> count(*) where nullif("age", 18) is null
SELECT least(age, 30), greatest(age, 18, NULL), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by least("age", 30), greatest("age", 18, null)
SELECT COALESCE(SUM(bonus), 0) FROM people WHERE age > 1000;
--> sum("bonus") where "age" > 1000

-- Arithmetic over aggregates
SELECT ROUND(AVG(income), 2), SUM(income) / COUNT(*), 1.0 * SUM(income) / COUNT(*) FROM people;
--> avg("income")
--> sum("income")
--> count(*)
SELECT ROUND(AVG(score)::numeric, 2) FROM people WHERE score < 100;
--> avg("score") where "score" < 100.0e0
SELECT COUNT(*) - COUNT(age) AS nulls, COUNT(*) * 100.0 / 60, -SUM(income) FROM people;
--> count(*)
--> count("age")
--> sum("income")
SELECT CASE WHEN COUNT(*) > 5 THEN SUM(income) END, GREATEST(COUNT(*), 10) FROM people;
--> count(*)
--> sum("income")

-- Weights, CASE, private categories
SELECT SUM(weight * income), SUM(income * 2 + 1), SUM(weight * bonus), SUM(-income), SUM((income - 3) * weight) FROM people;
--> sum(("weight" * "income"))
--> sum((("income" * 2) + 1))
--> sum((cast("weight" as decimal) * "bonus"))
--> sum((0 - "income"))
--> sum((("income" - 3) * "weight"))
SELECT SUM(weight * income) / SUM(weight) FROM people;
--> sum(("weight" * "income"))
--> sum("weight")
SELECT SUM(CASE WHEN sex = 'f' THEN income ELSE 0 END), SUM(CASE sex WHEN 'm' THEN income END) FROM people;
--> sum(case when ("sex" = 'f') then "income" else 0 end)
--> sum(case when ("sex" = 'm') then "income" else null end)
SELECT SUM(income / 2.0), SUM(CAST(income AS numeric)), SUM(coalesce(income, 0)) FROM people;
--> sum((cast("income" as decimal) / 2.0))
--> sum(cast("income" as decimal))
--> sum(coalesce("income", 0))
SELECT COUNT(*) FROM people WHERE diagnosis = 'flu';
--> count(*) where "diagnosis" = 'flu'
SELECT COUNT(*) FROM people WHERE diagnosis IN ('flu', 'gout') AND age > 18;
--> count(*) where ("diagnosis" in ('flu', 'gout')) and ("age" > 18)
SELECT COUNT(*) FROM people WHERE NOT diagnosis = 'none' OR age < 18;
--> count(*) where (not ("diagnosis" = 'none')) or ("age" < 18)
SELECT diagnosis, COUNT(*), SUM(weight) FROM people GROUP BY diagnosis;
--> count(*) by "diagnosis"
--> sum("weight") by "diagnosis"
SELECT sex, diagnosis LIKE 'g%', COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by "sex", ("diagnosis" like 'g%')
SELECT SUM(CASE WHEN diagnosis <> 'none' THEN weight ELSE 0 END) FROM people;
--> sum(case when ("diagnosis" <> 'none') then "weight" else 0 end)
SELECT COUNT(*), SUM(income) FROM people WHERE income > 500;
--> count(*) where "income" > 500
--> sum("income") where "income" > 500
SELECT SUM(income) FROM people WHERE diagnosis = 'flu';
--> sum("income") where "diagnosis" = 'flu'
SELECT MIN(income), MAX(bonus) FROM people WHERE sex = 'f';
--> min("income") where "sex" = 'f'
--> max("bonus") where "sex" = 'f'

-- Joins to public tables
SELECT COUNT(*) FROM people p JOIN areas a ON p.area = a.area WHERE a.region = 'north';
--> count(*) join "areas" j1 where ("area" = j1."area") and (j1."region" = 'north')
SELECT a.region, SUM(p.income * a.rate), COUNT(*) FROM people p INNER JOIN areas a USING (area) GROUP BY a.region;
--> sum((cast("income" as decimal) * j1."rate")) join "areas" j1 where "area" = j1."area" by j1."region"
--> count(*) join "areas" j1 where "area" = j1."area" by j1."region"
SELECT COUNT(*), SUM(income) FROM people, areas WHERE people.area = areas.area AND region = 'south';
--> count(*) join "areas" j1 where ("area" = j1."area") and (j1."region" = 'south')
--> sum("income") join "areas" j1 where ("area" = j1."area") and (j1."region" = 'south')
SELECT COUNT(*), SUM(income) FROM areas JOIN people ON people.area = areas.area AND rate > 1.5;
--> count(*) join "areas" j1 where ("area" = j1."area") and (j1."rate" > 1.5)
--> sum("income") join "areas" j1 where ("area" = j1."area") and (j1."rate" > 1.5)
SELECT COUNT(*), SUM(o.price), SUM(income), AVG(income), MAX(income) FROM people p JOIN offers o ON p.area = o.area;
--> count(*) join "offers" j1 where "area" = j1."area"
--> sum(j1."price") join "offers" j1 where "area" = j1."area"
--> sum("income") join "offers" j1 where "area" = j1."area"
--> avg("income") join "offers" j1 where "area" = j1."area"
--> max("income") join "offers" j1 where "area" = j1."area"
SELECT region, offer, COUNT(*) FROM people p JOIN areas a ON a.area = p.area JOIN offers o ON o.area = a.area GROUP BY region, offer;
--> count(*) join "areas" j1 join "offers" j2 where (j1."area" = "area") and (j2."area" = j1."area") by j1."region", j2."offer"
SELECT COUNT(*) FROM people p CROSS JOIN offers o WHERE p.age > o.price * 10;
--> count(*) join "offers" j1 where "age" > (j1."price" * 10)
SELECT x.region, COUNT(*) FROM people p JOIN areas x ON x.area = p.area JOIN areas y ON y.area = p.area WHERE x.region = y.region GROUP BY 1;
--> count(*) join "areas" j1 join "areas" j2 where (j1."area" = "area") and (j2."area" = "area") and (j1."region" = j2."region") by j1."region"

-- Derived tables, WITH, UNION ALL
WITH adults AS (SELECT * FROM people WHERE age >= 18) SELECT sex, COUNT(*) FROM adults GROUP BY sex;
--> count(*) where "age" >= 18 by "sex"
WITH a AS (SELECT income * 2 AS twice, sex FROM people), b AS (SELECT twice + 1 AS more FROM a WHERE sex = 'f') SELECT SUM(more) FROM b;
--> sum((("income" * 2) + 1)) where "sex" = 'f'
SELECT SUM(x) FROM (SELECT income AS x, age FROM people WHERE sex = 'm') AS q WHERE q.age > 10;
--> sum("income") where ("sex" = 'm') and ("age" > 10)
SELECT SUM(q.v) FROM (SELECT income, age FROM people) AS q (v, w) WHERE q.w > 10;
--> sum("income") where "age" > 10
SELECT n.region, SUM(p.income) FROM people p JOIN (SELECT area, region FROM areas WHERE region = 'north') AS n ON n.area = p.area GROUP BY 1;
--> sum("income") join "areas" j1 where (j1."region" = 'north') and (j1."area" = "area") by j1."region"
WITH t AS (SELECT sex, SUM(income) AS s, COUNT(*) AS n FROM people GROUP BY sex) SELECT sex, s / n FROM t WHERE n > 3;
--> sum("income") by "sex"
--> count(*) by "sex"
SELECT * FROM (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) AS q ORDER BY n LIMIT 3;
--> count(*) by "sex"
SELECT COUNT(*) FROM people UNION ALL SELECT SUM(income) FROM people WHERE age > 30 UNION ALL SELECT MAX(age) FROM people;
--> count(*)
--> sum("income") where "age" > 30
--> max("age")
(SELECT COUNT(*) FROM people) UNION ALL (SELECT SUM(income) FROM people) ORDER BY 1;
--> count(*)
--> sum("income")
WITH p AS (SELECT * FROM people WHERE member) SELECT COUNT(*) FROM p UNION ALL SELECT SUM(income) FROM p;
--> count(*) where "member"
--> sum("income") where "member"

-- Names, positions and scopes
SELECT 1, COUNT(*) FROM people GROUP BY 1;
--> count(*) by 1
SELECT 2 AS x, COUNT(*) FROM people GROUP BY x;
--> count(*) by 2
SELECT age AS sex, COUNT(*) FROM people GROUP BY sex, age;
--> count(*) by "sex", "age"
SELECT sex, sex, COUNT(*) FROM people GROUP BY GROUPING SETS ((sex), (sex), ());
--> count(*) by "sex"
--> count(*)
SELECT sex, area, COUNT(*) FROM people GROUP BY ROLLUP (sex), ROLLUP (sex, area);
--> count(*) by "sex", "area"
--> count(*) by "sex"
--> count(*)
SELECT sex, COUNT(*) FROM people GROUP BY DISTINCT CUBE (sex), CUBE (sex);
--> count(*) by "sex"
--> count(*)
SELECT 0 AS k, round(COUNT(*) / 4.0), COUNT(*) + 0 FROM people GROUP BY ROLLUP (1);
--> count(*) by 0
--> count(*)
SELECT COUNT(*) FROM people HAVING COUNT(*) > 100;
--> count(*)
SELECT COUNT(*) AS area, SUM(age) FROM people GROUP BY sex ORDER BY area DESC NULLS LAST, 2;
--> count(*) by "sex"
--> sum("age") by "sex"
WITH people AS (SELECT * FROM people WHERE age > 30) SELECT COUNT(*) FROM people;
--> count(*) where "age" > 30
WITH "A" AS (SELECT * FROM people WHERE age > 30), a AS (SELECT * FROM people) SELECT COUNT(*) FROM "A";
--> count(*) where "age" > 30
WITH a AS (SELECT * FROM people WHERE age > 30), b AS (WITH a AS (SELECT * FROM people WHERE age < 30) SELECT * FROM a) SELECT COUNT(*) FROM b;
--> count(*) where "age" < 30
WITH n AS (SELECT area, region FROM areas) SELECT COUNT(*) FROM people p JOIN n x ON x.area = p.area JOIN n y ON y.area = p.area AND y.region = 'north';
--> count(*) join "areas" j1 join "areas" j2 where (j1."area" = "area") and (j2."area" = "area") and (j2."region" = 'north')
SELECT a.area, COUNT(*) FROM people p JOIN areas a USING (area) WHERE a.area > 1 GROUP BY a.area;
--> count(*) join "areas" j1 where ("area" = j1."area") and (j1."area" > 1) by j1."area"
SELECT SUM(q.b), COUNT(q.region) FROM (SELECT * FROM (SELECT age, area FROM people) AS p JOIN (SELECT region, area FROM areas) AS a USING (area)) AS q (a, b);
--> sum("age") join "areas" j1 where "area" = j1."area"
--> count(j1."region") join "areas" j1 where "area" = j1."area"
WITH u AS (SELECT COUNT(*) AS n FROM people UNION ALL SELECT SUM("Height") FROM people) SELECT n + 1 FROM u WHERE n < 100;
--> count(*)
--> sum("Height")
WITH u (m) AS (SELECT sex, COUNT(*) AS n FROM people GROUP BY sex) SELECT u.m, u.n FROM u;
--> count(*) by "sex"
SELECT COUNT(*) FROM people p JOIN areas a ON a.area = p.area UNION ALL SELECT COUNT(*) FROM people p JOIN areas a ON a.area = p.area;
--> count(*) join "areas" j1 where j1."area" = "area"

-- Decimals that PostgreSQL rounds away from zero, and doubles that it does not
SELECT round(age / 4.0), round(age / 4.0::double precision), (age / 4.0)::int, (age / 4.0)::double precision::int, COUNT(*) FROM people GROUP BY 1, 2, 3, 4;
--> count(*) by round((cast("age" as decimal) / 4.0), 0), round((cast("age" as double) / 4.0e0)), cast(round((cast("age" as decimal) / 4.0), 0) as integer), cast(cast((cast("age" as decimal) / 4.0) as double) as integer)
SELECT round(5 / 2.0), round(sqrt(6.25)), round(power(2.5, 1)), round(5 / 2.0::double precision), COUNT(*) FROM people;
--> count(*)
SELECT round(COUNT(*) / 4.0), round(SUM(age / 4.0)), (SUM(age) / 4.0)::int, round(100.0 * COUNT(*) / 16, 1) FROM people GROUP BY sex, area;
--> count(*) by "sex", "area"
--> sum((cast("age" as decimal) / 4.0)) by "sex", "area"
--> sum("age") by "sex", "area"
SELECT round("Height" * 10 / 4), round(sqrt(abs("Height")) * 2), round(score / 2), COUNT(*) FROM people GROUP BY 1, 2, 3;
--> count(*) by round((("Height" * 10) / 4), 0), round((sqrt(abs("Height")) * 2.0e0), 0), round(("score" / 2.0e0))
SELECT SUM("Height" * 1.123456789012 * 1.123456789012 * 1.123456789012), SUM("Height" + 1.123456789012) FROM people;
--> sum(((("Height" * 1.123456789012) * 1.123456789012) * 1.123456789012))
--> sum(("Height" + 1.123456789012))
SELECT least("Height" * 2, -1.875), CASE WHEN age > 18 THEN "Height" + 1 ELSE 0.125 END, coalesce(floor("Height" * 2), 0.375), COUNT(*) FROM people GROUP BY 1, 2, 3;
--> count(*) by least(("Height" * 2), (-1.875)), case when ("age" > 18) then ("Height" + 1) else 0.125 end, coalesce(floor(("Height" * 2)), 0.375)

-- Nested arithmetic, of which an engine must not make exponential work
SELECT SUM(age + weight + age + weight + age + weight + age + weight + age + weight + age + weight + age + weight + age) FROM people;
--> sum((((((((((((((("age" + "weight") + "age") + "weight") + "age") + "weight") + "age") + "weight") + "age") + "weight") + "age") + "weight") + "age") + "weight") + "age"))
SELECT SUM(score / (2 + abs(score / (2 + abs(score / (2 + abs(score / (2 + abs(score / (2 + abs(score))))))))))) FROM people;
--> sum(("score" / (2.0e0 + abs(("score" / (2.0e0 + abs(("score" / (2.0e0 + abs(("score" / (2.0e0 + abs(("score" / (2.0e0 + abs("score"))))))))))))))))
SELECT nullif(nullif(nullif(nullif(nullif(nullif(nullif(nullif(age, 1), 2), 3), 4), 5), 6), 7), 18), COUNT(*) FROM people GROUP BY 1;
--> count(*) by nullif(nullif(nullif(nullif(nullif(nullif(nullif(nullif("age", 1), 2), 3), 4), 5), 6), 7), 18)

-- NULL in conditions that an optimiser may take apart
SELECT COUNT(*), COUNT(age) FROM people WHERE CASE WHEN age IS NULL THEN 'f' END IN ('f', 'm');
--> count(*) where case when ("age" is null) then 'f' else null end in ('f', 'm')
--> count("age") where case when ("age" is null) then 'f' else null end in ('f', 'm')
SELECT COUNT(*) FROM people WHERE NOT (member IS TRUE) OR NOT (member < TRUE);
--> count(*) where (not ("member" is true)) or (not ("member" < true))
SELECT nullif(born, seen), nullif(seen, born), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by case when (cast("born" as timestamp) = "seen") then null else "born" end, case when ("seen" = cast("born" as timestamp)) then null else "seen" end
SELECT nullif(age, 18.0) / 4, least(age, NULL, 2.5), COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by (nullif(cast("age" as decimal), 18.0) / 4), least(cast("age" as decimal), null, 2.5)

-- What PostgreSQL itself raises on, or spells differently: here it is NULL, or understood
--! SELECT 1 / 0, COUNT(*) FROM people;
--> count(*)
--! SELECT SUM(1 / age), SUM(sqrt(age)), SUM(ln(age)), SUM(1.0 / age), SUM(age % weight), COUNT(weight / weight) FROM people;
--> sum((1 / "age"))
--> sum(sqrt(cast("age" as double)))
--> sum(ln(cast("age" as double)))
--> sum((1.0 / cast("age" as decimal)))
--> sum(("age" % "weight"))
--> count(("weight" / "weight"))
--! SELECT SUM(exp(age * 100)), SUM(power(age, 400)), SUM(power(score, 0.5)), SUM(score / score) FROM people;
--> sum(exp(cast(("age" * 100) as double)))
--> sum(power(cast("age" as double), 400.0e0))
--> sum(power("score", 0.5e0))
--> sum(("score" / "score"))
--! SELECT SUM(age * 9223372036854775807), SUM(age + 9223372036854775807), SUM(abs(-9223372036854775807 - age)) FROM people;
--> sum(("age" * 9223372036854775807))
--> sum(("age" + 9223372036854775807))
--> sum(abs((-9223372036854775807 - "age")))
--! SELECT note::int, note::numeric(5, 1), note::double precision, COUNT(*) FROM people GROUP BY 1, 2, 3;
--> count(*) by cast("note" as integer), cast("note" as decimal(1)), cast("note" as double)
--! SELECT CAST(score * 1e18 AS bigint), COUNT(*) FROM people GROUP BY 1;
--> count(*) by cast(("score" * 1e+18) as integer)
--! SELECT COUNT(*) FROM people WHERE 10 / (age - 18) > 0 OR sqrt(score) > 1;
--> count(*) where ((10 / ("age" - 18)) > 0) or (sqrt("score") > 1.0e0)
--! SELECT median(income), MEDIAN(bonus) FROM people;
--> median("income")
--> median("bonus")
--! SELECT quantile_cont(income, 0.25), quantile_disc(bonus, .1), quantile(income, 1), Quantile_Cont(bonus, 0.5) FROM people;
--> quantile_cont("income", 0.25)
--> quantile_disc("bonus", 0.1)
--> quantile_disc("income", 1)
--> median("bonus")
--! SELECT sex, quantile_cont(income, 0.4) FILTER (WHERE age > 20) FROM people GROUP BY sex HAVING quantile_disc(age, 0.5) > 1;
--> quantile_cont("income", 0.4) where "age" > 20 by "sex"
--> quantile_disc("age", 0.5) by "sex"
--! SELECT round(score, 2), COUNT(*) FROM people GROUP BY 1;
--> count(*) by round("score", 2)
--! SELECT COUNT(*) FROM people WHERE AGE > 3 AND height > 0;
--> count(*) where ("age" > 3) and ("Height" > 0)
--! SELECT member::boolean::int, age::boolean, COUNT(*) FROM people GROUP BY 1, 2;
--> count(*) by cast("member" as integer), cast("age" as boolean)
