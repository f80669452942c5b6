// Package sinkmysql holds the MySQL sink against real servers, MySQL and MariaDB.
package sinkmysql
