-- A shop that sells by itself. It has what Weir's user needs, too; see docs/mysql.md.
GRANT SELECT, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO weir;

CREATE TABLE shop.customers (
  id   INT AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(40) NOT NULL,
  city VARCHAR(40) NOT NULL
);

CREATE TABLE shop.orders (
  id       BIGINT AUTO_INCREMENT PRIMARY KEY,
  customer INT NOT NULL,
  price    DECIMAL(10,2) NOT NULL,
  state    ENUM('open', 'shipped') NOT NULL DEFAULT 'open',
  changed  TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6)
);

INSERT INTO shop.customers (name, city)
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500)
SELECT concat('customer ', i), elt(1 + i % 4, 'Ulm', 'Graz', 'Bern', 'Aachen') FROM n;

INSERT INTO shop.orders (customer, price)
SELECT c.id, 1 + (c.id * 7 + d.id * 13) % 9900 / 100 FROM shop.customers c JOIN shop.customers d ON d.id <= 10;

CREATE DEFINER = 'root'@'localhost' EVENT shop.sell ON SCHEDULE EVERY 1 SECOND DO
  INSERT INTO shop.orders (customer, price) SELECT id, 1 + rand() * 99 FROM shop.customers ORDER BY rand() LIMIT 20;

CREATE DEFINER = 'root'@'localhost' EVENT shop.ship ON SCHEDULE EVERY 1 SECOND DO
  UPDATE shop.orders SET state = 'shipped' WHERE state = 'open' ORDER BY id LIMIT 15;

CREATE DEFINER = 'root'@'localhost' EVENT shop.tidy ON SCHEDULE EVERY 1 SECOND DO
  DELETE FROM shop.orders WHERE state = 'shipped' ORDER BY id LIMIT 10;
