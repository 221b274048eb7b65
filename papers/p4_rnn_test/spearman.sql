WITH s AS (
  SELECT c.metric AS metric, c.method AS method, c.seed AS seed, c.pp_i AS pp_i, c.covered AS covered
  FROM scatter AS c JOIN rates AS r ON c.method = r.method AND c.seed = r.seed WHERE r.gen_rate >= 0.9 AND c.metric IN ('HS', 'CS0', 'CS4')),
ranks AS (
  SELECT a.metric AS metric, a.seed AS seed, a.method AS method,
         SUM(CASE WHEN b.pp_i < a.pp_i THEN 1.0 WHEN b.pp_i = a.pp_i THEN 0.5 ELSE 0.0 END) AS x,
         SUM(CASE WHEN b.covered < a.covered THEN 1.0 WHEN b.covered = a.covered THEN 0.5 ELSE 0.0 END) AS y
  FROM s AS a JOIN s AS b ON a.metric = b.metric AND a.seed = b.seed GROUP BY a.metric, a.seed, a.method)
SELECT metric, seed, CORR(x, y) AS spearman, COUNT(*) AS n FROM ranks GROUP BY metric, seed ORDER BY metric, seed
