/* SPDX-License-Identifier: MIT */
/* The questions. sqlite imports every field as text, the empty ones as empty texts; each data
 * set so begins with a view that gives the columns their types. */
#include "answers.h"

#define SET(set, words, path, view, list) \
    const data_set set = {words, path, view, list, sizeof list / sizeof *list}

/* ---- the chemical elements ---- */

#define ELEMENTS "examples/columns/elements.csv"

/* awk knows no quotes; this file has none. */
static const question elements_by_awk[] = {
    {"count(*), sum(number), sum(mass)",
     "NR>1{n++;s+=$1;m+=$4} END{printf \"%d,%d,%.15g\\n\",n,s,m}"},
    {"category, count(*), avg(mass), min(density), max(melting) group by category "
     "order by category",
     "NR>1{k=$8;n[k]++;m[k]+=$4;"
     "if($10!=\"\"&&(!(k in d)||$10+0<d[k]))d[k]=$10+0;"
     "if($11!=\"\"&&(!(k in t)||$11+0>t[k]))t[k]=$11+0}"
     "END{for(k in n)printf \"%s,%d,%.15g,%s,%s\\n\",k,n[k],m[k]/n[k],"
     "(k in d)?d[k]:\"\",(k in t)?t[k]:\"\" | \"LC_ALL=C sort -t, -k1,1\"}"},
    {"name, mass / density where density > 15",
     "NR>1&&$10!=\"\"&&$10>15{printf \"%s,%.15g\\n\",$3,$4/$10}"},
    {"count(*), avg(electronegativity) where stable and phase != 'gas'",
     "NR>1&&$13==\"true\"&&$9!=\"gas\"&&$9!=\"\"{n++;if($12!=\"\"){e+=$12;c++}}"
     "END{printf \"%d,%.15g\\n\",n,e/c}"},
    {"sum(if(melting > 1000, number, 0 - number))",
     "NR>1{s+=($11!=\"\"&&$11>1000)?$1:-$1} END{print s}"},
};
SET(elements_awk, "awk-elements", ELEMENTS, "", elements_by_awk);

static const char elements_view[] =
    "create view v as select cast(number as int) number, symbol, name, cast(mass as real) mass,"
    "cast(nullif(\"group\",'') as int) grp, cast(period as int) period, block,"
    "nullif(category,'') category, nullif(phase,'') phase,"
    "cast(nullif(density,'') as real) density, cast(nullif(melting,'') as real) melting,"
    "cast(nullif(electronegativity,'') as real) en, stable='true' stable from t;";

static const question elements_by_sql[] = {
    {"*", "select number, symbol, name, mass, grp, period, block, category, phase, density, "
          "melting, en, iif(stable, 'true', 'false') from v"},
    {"category, phase, count(*), avg(mass), sum(number), min(name), max(electronegativity) "
     "group by category, phase order by category, phase",
     "select category, phase, count(*), avg(mass), sum(number), min(name), max(en) from v "
     "group by 1, 2 order by 1, 2"},
    {"symbol, if(melting > 1000 or density < 1, mass / density, null) order by 2 desc, symbol",
     "select symbol, case when melting > 1000 or density < 1 then mass / density end x from v "
     "order by x desc, symbol"},
    {"name where not (density > 5) and electronegativity is not null order by name desc",
     "select name from v where not (density > 5) and en is not null order by name desc"},
    {"int(mass) % 7 as r, count(*), sum(int(stable)) group by r order by r",
     "select cast(mass as int) % 7 r, count(*), sum(stable) from v group by r order by r"},
    {"upper(substr(name, 1, 3)), length(name), coalesce(phase, 'unknown') where period = 7",
     "select upper(substr(name,1,3)), length(name), coalesce(phase,'unknown') from v "
     "where period = 7"},
    {"abs(mass - number * 2.5), round(density), number * number - 1 where \"group\" is null",
     "select abs(mass - number * 2.5), round(density), number * number - 1 from v "
     "where grp is null"},
    {"count(*), count(density), sum(density), avg(\"group\"), min(density), max(name) "
     "where period > 9",
     "select count(*), count(density), sum(density), avg(grp), min(density), max(name) from v "
     "where period > 9"},
    {"block, stable, count(*) where phase = 'solid' group by block, stable order by 1, 2",
     "select block, iif(stable, 'true', 'false'), count(*) from v where phase = 'solid' "
     "group by 1, 2 order by 1, 2"},
};
SET(elements_sql, "sqlite-elements", ELEMENTS, elements_view, elements_by_sql);

/* ---- the weather ---- */

static const question weather_by_sql[] = {
    {"*", "select * from v"},
    {"weather, count(*), avg(temp_max), min(wind), max(precipitation) group by weather "
     "order by weather",
     "select weather, count(*), avg(temp_max), min(wind), max(precipitation) from v "
     "group by 1 order by 1"},
    {"substr(date, 1, 4) as year, weather, sum(precipitation), avg(temp_max - temp_min) "
     "where wind > 3 group by year, weather order by year, weather",
     "select substr(date,1,4) y, weather, sum(precipitation), avg(temp_max - temp_min) from v "
     "where wind > 3 group by 1, 2 order by 1, 2"},
    {"date, temp_max where temp_max >= 33 and weather = 'sun' order by temp_max desc, date",
     "select date, temp_max from v where temp_max >= 33 and weather = 'sun' "
     "order by temp_max desc, date"},
    {"int(temp_max) / 10 as t, count(*), sum(if(weather = 'rain', 1, 0)) group by t order by t",
     "select cast(temp_max as int) / 10.0 t, count(*), sum(iif(weather = 'rain', 1, 0)) from v "
     "group by t order by t"},
    {"max(temp_max * 9 / 5 + 32), min(temp_min * 9 / 5 + 32), avg(wind * wind)",
     "select max(temp_max * 9 / 5 + 32), min(temp_min * 9 / 5 + 32), avg(wind * wind) from v"},
};
SET(weather_sql, "sqlite-weather", "seattle-weather.csv",
    "create view v as select date, precipitation + 0.0 precipitation, temp_max + 0.0 temp_max,"
    "temp_min + 0.0 temp_min, wind + 0.0 wind, weather from t;",
    weather_by_sql);

/* ---- the birds ---- */

static const question birdstrikes_by_sql[] = {
    {"*", "select * from t"},
    {"\"Phase of flight\", count(*), sum(\"Cost Total $\"), avg(\"Speed IAS in knots\"), "
     "count(\"Speed IAS in knots\") group by [Phase of flight] order by 1",
     "select \"Phase of flight\", count(*), sum(cost), avg(speed), count(speed) from v "
     "group by 1 order by 1"},
    {"[Origin State], [Wildlife Size], max(\"Cost Repair\") where \"Cost Total $\" > 0 "
     "group by 1, 2 order by 3 desc, 1, 2",
     "select \"Origin State\", \"Wildlife Size\", max(repair) from v where cost > 0 "
     "group by 1, 2 order by 3 desc, 1, 2"},
    {"[Flight Date], [Airport Name], [Cost Other] + [Cost Repair] "
     "where [Wildlife Species] = 'Canada goose' and [Speed IAS in knots] is null "
     "order by 1, 2, 3",
     "select \"Flight Date\", \"Airport Name\", other + repair from v "
     "where \"Wildlife Species\" = 'Canada goose' and speed is null order by 1, 2, 3"},
    {"count(*), sum(int([Cost Total $] = [Cost Other] + [Cost Repair]))",
     "select count(*), sum(cost = other + repair) from v"},
    {"if([Speed IAS in knots] > 150, 'fast', 'slow') as pace, [Time of day], count(*), "
     "avg([Cost Total $]) group by pace, [Time of day] order by pace, [Time of day]",
     "select iif(speed > 150, 'fast', 'slow') pace, \"Time of day\", count(*), avg(cost) from v "
     "group by 1, 2 order by 1, 2"},
    {"length([Airport Name]), count(*) group by 1 order by 1",
     "select length(\"Airport Name\"), count(*) from v group by 1 order by 1"},
};
SET(birdstrikes_sql, "sqlite-birdstrikes", "birdstrikes.csv",
    "create view v as select *, cast(\"Cost Total $\" as int) cost,"
    "cast(\"Cost Other\" as int) other, cast(\"Cost Repair\" as int) repair,"
    "cast(nullif(\"Speed IAS in knots\",'') as int) speed from t;",
    birdstrikes_by_sql);

/* ---- everything that CSV allows ---- */

const char messy_csv[] = "id,\"the, name\",\"say \"\"what\"\"\",size\r\n"
                         "1,\"a, b\",\"he said \"\"no\"\"\",1.5\r\n"
                         "2,\"two\nlines\",,-2\r\n"
                         "3,\"\",\"\"\"\",1e3\r\n"
                         "4, spaced ,'single',\r\n"
                         "5,Ünïcödé,\"\r\n\",0.25";

static const question messy_by_sql[] = {
    {"*", "select * from t"},
    {"id, length(\"the, name\"), length(\"say \"\"what\"\"\"), size * 2 order by id desc",
     "select id, length(nullif(\"the, name\",'')), length(nullif(\"say \"\"what\"\"\",'')), "
     "nullif(size,'') * 2 from t order by id desc"},
};
SET(messy_sql, "sqlite-messy", NULL, "", messy_by_sql);
